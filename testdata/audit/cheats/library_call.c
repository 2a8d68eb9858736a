// audit: library-call
#include <cblas.h>
void kernel(const float *a, const float *b, float *c, int n) {
  cblas_sgemm(101, 111, 111, n, n, n, 1.0f, a, n, b, n, 0.0f, c, n);
}
