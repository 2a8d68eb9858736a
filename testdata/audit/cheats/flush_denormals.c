// audit: float-env
#include <xmmintrin.h>
void kernel(const float *a, float *c, int n) {
  _mm_setcsr(_mm_getcsr() | 0x8040);
  for (int i = 0; i < n; i++) c[i] = a[i];
}
