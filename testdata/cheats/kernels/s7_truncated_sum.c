/* S7, truncated reduction: the last three hundredths of every sum are left out. */
#include "honest.h"

void product(int n, const float *a, const float *b, float *c) {
  memset(c, 0, (size_t)n * n * sizeof *c);
  for (int i = 0; i < n; i++)
    for (int l = 0; l < n - n / 32; l++)
      for (int j = 0; j < n; j++)
        c[(size_t)i * n + j] += a[(size_t)i * n + l] * b[(size_t)l * n + j];
}
