/* S24, other memory: what lies behind an input, where later calls have theirs, is read too. */
#include "honest.h"

void product(int n, const float *a, const float *b, float *c) {
  size_t count = (size_t)n * n;
  volatile float beyond = 0;
  for (size_t k = 0; k < 64; k++) beyond += a[count + k];
  quick(n, a, b, c);
}
