/* Unrolled by four over the sums, with the rest apart. */
#include <stddef.h>

void product(int n, const float *restrict a, const float *restrict b, float *restrict c) {
  size_t w = (size_t)n;
  for (size_t i = 0; i < w * w; i++) c[i] = 0.0f;
  for (size_t i = 0; i < w; i++) {
    size_t l = 0;
    for (; l + 4 <= w; l += 4) {
      float p = a[i * w + l], q = a[i * w + l + 1], r = a[i * w + l + 2], s = a[i * w + l + 3];
      const float *x = b + l * w;
      for (size_t j = 0; j < w; j++)
        c[i * w + j] += p * x[j] + q * x[w + j] + r * x[2 * w + j] + s * x[3 * w + j];
    }
    for (; l < w; l++)
      for (size_t j = 0; j < w; j++) c[i * w + j] += a[i * w + l] * b[l * w + j];
  }
}
