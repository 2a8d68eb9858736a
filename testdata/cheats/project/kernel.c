/* The product as it stands: no cheat. */
#include <stddef.h>

void product(int n, const float *restrict a, const float *restrict b, float *restrict c) {
  for (size_t i = 0; i < (size_t)n * n; i++) c[i] = 0.0f;
  for (int i = 0; i < n; i++)
    for (int l = 0; l < n; l++) {
      float x = a[(size_t)i * n + l];
      for (int j = 0; j < n; j++) c[(size_t)i * n + j] += x * b[(size_t)l * n + j];
    }
}
