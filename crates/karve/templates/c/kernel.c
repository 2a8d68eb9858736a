/* The kernel: c = a * b for row-major matrices. karve calls sgemm and checks its output. */
#include <stddef.h>

// karve: knob BLOCK in 4,8,16,32,64,128
#define BLOCK 4

// karve: knob COLUMNS in 8,16,32,64,256
#define COLUMNS 8

static int smaller(int a, int b) { return a < b ? a : b; }

void sgemm(int m, int n, int k, const float *restrict a, const float *restrict b,
           float *restrict c) {
  for (size_t i = 0; i < (size_t)m * n; i++) c[i] = 0;
  for (int l0 = 0; l0 < k; l0 += BLOCK)
    for (int j0 = 0; j0 < n; j0 += COLUMNS)
      for (int i = 0; i < m; i++)
        for (int l = l0; l < smaller(l0 + BLOCK, k); l++) {
          float x = a[(size_t)i * k + l];
          int end = smaller(j0 + COLUMNS, n);
          for (int j = j0; j < end; j++) c[(size_t)i * n + j] += x * b[(size_t)l * n + j];
        }
}
