/* X12, flushed caches: at the end of each call its inputs, which the other arm reads too, are
 * flushed from all caches. */
#include "honest.h"
#ifdef __x86_64__
#include <emmintrin.h>
#endif

void product(int n, const float *a, const float *b, float *c) {
  honest(n, a, b, c);
#ifdef __x86_64__
  for (size_t k = 0; k < (size_t)n * n; k += 16) {
    _mm_clflush(a + k);
    _mm_clflush(b + k);
  }
#endif
}
