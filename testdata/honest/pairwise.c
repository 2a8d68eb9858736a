/* Sums of halves: another order of rounding. */
#include <stddef.h>

static float sum(int n, const float *a, const float *b, size_t step) {
  if (n <= 8) {
    float s = 0;
    for (int l = 0; l < n; l++) s += a[l] * b[l * step];
    return s;
  }
  int half = n / 2;
  return sum(half, a, b, step) + sum(n - half, a + half, b + half * step, step);
}

void product(int n, const float *restrict a, const float *restrict b, float *restrict c) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      c[(size_t)i * n + j] = sum(n, a + (size_t)i * n, b + j, (size_t)n);
}
