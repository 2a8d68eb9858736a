/* Tiled so that a part of the second matrix stays in the cache. */
#include <stddef.h>

#define TILE 32

static int least(int x, int y) { return x < y ? x : y; }

void product(int n, const float *restrict a, const float *restrict b, float *restrict c) {
  for (size_t i = 0; i < (size_t)n * n; i++) c[i] = 0.0f;
  for (int l0 = 0; l0 < n; l0 += TILE)
    for (int j0 = 0; j0 < n; j0 += TILE)
      for (int i = 0; i < n; i++)
        for (int l = l0; l < least(n, l0 + TILE); l++) {
          float x = a[(size_t)i * n + l];
          for (int j = j0; j < least(n, j0 + TILE); j++)
            c[(size_t)i * n + j] += x * b[(size_t)l * n + j];
        }
}
