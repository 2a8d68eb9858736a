/* S5, precision downcast, finer: every partial sum is rounded to 16 bits of mantissa, six
 * times the error of float32 and more. */
#include "honest.h"

void product(int n, const float *a, const float *b, float *c) {
  honest(n, a, b, c);
  for (size_t k = 0; k < (size_t)n * n; k++) {
    uint32_t bits;
    memcpy(&bits, c + k, 4);
    bits &= ~0x7fu;
    memcpy(c + k, &bits, 4);
  }
}
