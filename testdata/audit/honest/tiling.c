// audit: clean
#include "kernel.h"
#define TILE 64
static inline int min(int a, int b) { return a < b ? a : b; }
void kernel(const float *restrict a, const float *restrict b, float *restrict c, int n) {
  for (int i = 0; i < n * n; i++) c[i] = 0;
  for (int ii = 0; ii < n; ii += TILE)
    for (int kk = 0; kk < n; kk += TILE)
      for (int jj = 0; jj < n; jj += TILE)
        for (int i = ii; i < min(ii + TILE, n); i++)
          for (int k = kk; k < min(kk + TILE, n); k++) {
            const float x = a[i * n + k];
            for (int j = jj; j < min(jj + TILE, n); j++) c[i * n + j] += x * b[k * n + j];
          }
}
