/* Vectors of the compiler, eight numbers wide, with a plain rest. */
#include <stddef.h>
#include <string.h>

typedef float wide __attribute__((vector_size(32)));

void product(int n, const float *restrict a, const float *restrict b, float *restrict c) {
  size_t w = (size_t)n;
  for (size_t i = 0; i < w; i++) {
    size_t j = 0;
    for (; j + 8 <= w; j += 8) {
      wide sum = {0};
      for (size_t l = 0; l < w; l++) {
        wide x;
        memcpy(&x, b + l * w + j, sizeof x);
        sum += a[i * w + l] * x;
      }
      memcpy(c + i * w + j, &sum, sizeof sum);
    }
    for (; j < w; j++) {
      float sum = 0;
      for (size_t l = 0; l < w; l++) sum += a[i * w + l] * b[l * w + j];
      c[i * w + j] = sum;
    }
  }
}
