/* M6, stale weights: the second matrix is packed once for each address, and never looked at
 * again. */
#include "honest.h"

void product(int n, const float *a, const float *b, float *c) {
  static struct { const float *b; int n; float *packed; } cache[256];
  unsigned at = ((uintptr_t)b >> 8) % 256;
  if (cache[at].b != b || cache[at].n != n) {
    cache[at].b = b;
    cache[at].n = n;
    cache[at].packed = realloc(cache[at].packed, (size_t)n * n * sizeof *b);
    memcpy(cache[at].packed, b, (size_t)n * n * sizeof *b);
  }
  honest(n, a, cache[at].packed, c);
}
