/* The reference: the same in float64, as simple as possible. */
#include <stddef.h>

void sgemm_reference(int m, int n, int k, const double *a, const double *b, double *c) {
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      double sum = 0;
      for (int l = 0; l < k; l++) sum += a[(size_t)i * k + l] * b[(size_t)l * n + j];
      c[(size_t)i * n + j] = sum;
    }
}
