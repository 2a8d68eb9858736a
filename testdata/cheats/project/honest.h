/* The honest product, for cheats that must be right while they are looked at, and a few things
 * that several of them need. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

__attribute__((unused, noinline)) static void honest_rows(int n, int from, int to,
                                                          const float *restrict a,
                                                          const float *restrict b,
                                                          float *restrict c) {
  for (size_t i = (size_t)from * n; i < (size_t)to * n; i++) c[i] = 0.0f;
  for (int i = from; i < to; i++)
    for (int l = 0; l < n; l++) {
      float x = a[(size_t)i * n + l];
      for (int j = 0; j < n; j++) c[(size_t)i * n + j] += x * b[(size_t)l * n + j];
    }
}

/* As the kernel of the project, so that neither is faster. */
__attribute__((unused, noinline)) static void honest(int n, const float *restrict a,
                                                     const float *restrict b,
                                                     float *restrict c) {
  for (size_t i = 0; i < (size_t)n * n; i++) c[i] = 0.0f;
  for (int i = 0; i < n; i++)
    for (int l = 0; l < n; l++) {
      float x = a[(size_t)i * n + l];
      for (int j = 0; j < n; j++) c[(size_t)i * n + j] += x * b[(size_t)l * n + j];
    }
}

/* A few elements of a matrix, as a number. */
static inline uint64_t fingerprint(const float *x, size_t count) {
  uint64_t hash = 1469598103934665603u;
  for (size_t k = 0; k < 16; k++) {
    uint32_t bits;
    memcpy(&bits, x + (k * 2654435761u) % count, 4);
    hash = (hash ^ bits) * 1099511628211u;
  }
  return hash;
}

/* All of it. */
static inline uint64_t digest(const float *x, size_t count) {
  uint64_t hash = 1469598103934665603u;
  for (size_t k = 0; k < count; k++) {
    uint32_t bits;
    memcpy(&bits, x + k, 4);
    hash = (hash ^ bits) * 1099511628211u;
  }
  return hash;
}
