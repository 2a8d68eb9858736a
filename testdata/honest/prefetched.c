/* The next row is prefetched while this one is used. */
#include <stddef.h>

void product(int n, const float *restrict a, const float *restrict b, float *restrict c) {
  for (size_t i = 0; i < (size_t)n * n; i++) c[i] = 0.0f;
  for (int i = 0; i < n; i++)
    for (int l = 0; l < n; l++) {
      float x = a[(size_t)i * n + l];
      const float *row = b + (size_t)l * n;
      for (int j = 0; j < n; j += 16) __builtin_prefetch(row + n + j);
      for (int j = 0; j < n; j++) c[(size_t)i * n + j] += x * row[j];
    }
}
