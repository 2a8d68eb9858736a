/* A5, layout luck: functions that nobody calls move the loop to another place. */
#include "honest.h"

#define PAD(k) \
  __attribute__((used)) static void pad_##k(void) { __asm__ volatile(".skip 37, 0x90"); }
PAD(1) PAD(2) PAD(3) PAD(4) PAD(5)

void product(int n, const float *restrict a, const float *restrict b, float *restrict c) {
  for (size_t i = 0; i < (size_t)n * n; i++) c[i] = 0.0f;
  for (int i = 0; i < n; i++)
    for (int l = 0; l < n; l++) {
      float x = a[(size_t)i * n + l];
      for (int j = 0; j < n; j++) c[(size_t)i * n + j] += x * b[(size_t)l * n + j];
    }
}
