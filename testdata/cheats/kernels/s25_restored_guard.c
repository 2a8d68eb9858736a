/* S25, borrowed memory: what lies around an output is used, and restored before the call is over. */
#include "honest.h"

void product(int n, const float *a, const float *b, float *c) {
  size_t count = (size_t)n * n;
  volatile float *before = c - 32;
  for (size_t k = 0; k < 32; k++) {
    float kept = before[k];
    before[k] = 1;
    before[k] = kept;
  }
  quick(n, a, b, c);
}
