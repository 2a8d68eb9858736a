/* Where each row starts is looked up in a table that is made when the size changes. */
#include <stddef.h>
#include <stdlib.h>

void product(int n, const float *restrict a, const float *restrict b, float *restrict c) {
  static size_t *starts;
  static int size;
  if (size != n) {
    starts = realloc(starts, (size_t)n * sizeof *starts);
    for (int i = 0; i < n; i++) starts[i] = (size_t)i * n;
    size = n;
  }
  for (size_t i = 0; i < (size_t)n * n; i++) c[i] = 0.0f;
  for (int i = 0; i < n; i++)
    for (int l = 0; l < n; l++) {
      float x = a[starts[i] + l];
      const float *row = b + starts[l];
      float *out = c + starts[i];
      for (int j = 0; j < n; j++) out[j] += x * row[j];
    }
}
