/* Another order of the loops: whole columns of the first matrix at a time. */
#include <stddef.h>

void product(int n, const float *restrict a, const float *restrict b, float *restrict c) {
  for (size_t i = 0; i < (size_t)n * n; i++) c[i] = 0.0f;
  for (int l = 0; l < n; l++)
    for (int i = 0; i < n; i++) {
      float x = a[(size_t)i * n + l];
      for (int j = 0; j < n; j++) c[(size_t)i * n + j] += x * b[(size_t)l * n + j];
    }
}
