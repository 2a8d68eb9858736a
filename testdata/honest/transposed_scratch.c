/* The second matrix is turned into a scratch of its own in every call, and sums run along
 * rows. */
#include <stddef.h>
#include <stdlib.h>

void product(int n, const float *restrict a, const float *restrict b, float *restrict c) {
  size_t w = (size_t)n;
  float *turned = malloc(w * w * sizeof *turned);
  if (!turned) return;
  for (size_t i = 0; i < w; i++)
    for (size_t j = 0; j < w; j++) turned[j * w + i] = b[i * w + j];
  for (size_t i = 0; i < w; i++)
    for (size_t j = 0; j < w; j++) {
      float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
      size_t l = 0;
      for (; l + 4 <= w; l += 4) {
        s0 += a[i * w + l] * turned[j * w + l];
        s1 += a[i * w + l + 1] * turned[j * w + l + 1];
        s2 += a[i * w + l + 2] * turned[j * w + l + 2];
        s3 += a[i * w + l + 3] * turned[j * w + l + 3];
      }
      for (; l < w; l++) s0 += a[i * w + l] * turned[j * w + l];
      c[i * w + j] = (s0 + s1) + (s2 + s3);
    }
  free(turned);
}
