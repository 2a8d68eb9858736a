/* Blocks of the result are summed on the stack, and written once. */
#include <stddef.h>

#define BLOCK 16

void product(int n, const float *restrict a, const float *restrict b, float *restrict c) {
  for (int i = 0; i < n; i++)
    for (int j0 = 0; j0 < n; j0 += BLOCK) {
      int width = n - j0 < BLOCK ? n - j0 : BLOCK;
      float sum[BLOCK] = {0};
      for (int l = 0; l < n; l++) {
        float x = a[(size_t)i * n + l];
        const float *row = b + (size_t)l * n + j0;
        for (int j = 0; j < width; j++) sum[j] += x * row[j];
      }
      for (int j = 0; j < width; j++) c[(size_t)i * n + j0 + j] = sum[j];
    }
}
