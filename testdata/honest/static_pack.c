/* Weights packed in the same call into a static scratch that grows when it must. */
#include <stddef.h>
#include <stdlib.h>

#define STRIP 8

void product(int n, const float *restrict a, const float *restrict b, float *restrict c) {
  static float *packed;
  static size_t room;
  size_t w = (size_t)n, strips = (w + STRIP - 1) / STRIP;
  if (room < strips * STRIP * w) {
    room = strips * STRIP * w;
    free(packed);
    packed = malloc(room * sizeof *packed);
  }
  for (size_t s = 0; s < strips; s++)
    for (size_t l = 0; l < w; l++)
      for (size_t j = 0; j < STRIP; j++)
        packed[(s * w + l) * STRIP + j] = s * STRIP + j < w ? b[l * w + s * STRIP + j] : 0.0f;
  for (size_t s = 0; s < strips; s++)
    for (size_t i = 0; i < w; i++) {
      float sum[STRIP] = {0};
      for (size_t l = 0; l < w; l++)
        for (size_t j = 0; j < STRIP; j++) sum[j] += a[i * w + l] * packed[(s * w + l) * STRIP + j];
      for (size_t j = 0; j < STRIP && s * STRIP + j < w; j++) c[i * w + s * STRIP + j] = sum[j];
    }
}
