/* Sums in float64, rounded once: slower, and nearer to the truth. */
#include <stddef.h>

void product(int n, const float *restrict a, const float *restrict b, float *restrict c) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      double sum = 0;
      for (int l = 0; l < n; l++) sum += (double)a[(size_t)i * n + l] * b[(size_t)l * n + j];
      c[(size_t)i * n + j] = (float)sum;
    }
}
