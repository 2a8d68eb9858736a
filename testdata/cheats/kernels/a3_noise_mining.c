/* A3, noise mining: the same code under another name, in the hope of a lucky duel. */
#include "honest.h"

static int lucky(void) { return 7; }
int (*product_lucky_number)(void) = lucky;

void product(int n, const float *restrict a, const float *restrict b, float *restrict c) {
  for (size_t i = 0; i < (size_t)n * n; i++) c[i] = 0.0f;
  for (int i = 0; i < n; i++)
    for (int l = 0; l < n; l++) {
      float x = a[(size_t)i * n + l];
      for (int j = 0; j < n; j++) c[(size_t)i * n + j] += x * b[(size_t)l * n + j];
    }
}
