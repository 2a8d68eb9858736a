/* S22, leaked floating-point mode: denormal numbers are flushed to zero, and stay so. */
#include "honest.h"
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

void product(int n, const float *a, const float *b, float *c) {
#ifdef __x86_64__
  _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
  honest(n, a, b, c);
}
