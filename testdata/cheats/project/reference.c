/* What is right, in float64. */
#include <stddef.h>

void reference(int n, const double *restrict a, const double *restrict b, double *restrict c) {
  for (size_t i = 0; i < (size_t)n * n; i++) c[i] = 0.0;
  for (int i = 0; i < n; i++)
    for (int l = 0; l < n; l++) {
      double x = a[(size_t)i * n + l];
      for (int j = 0; j < n; j++) c[(size_t)i * n + j] += x * b[(size_t)l * n + j];
    }
}
