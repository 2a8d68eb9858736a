/* The honest product, for cheats that must be right while they are looked at, and a few things
 * that several of them need. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In the build for the test of layers, a process ends where a cheat knows whether what it tries was
 * possible: with 101 if it was, with 102 if it was refused. What is tried outside of a call ends the
 * next call. Otherwise nothing is evaluated. */
#ifdef SHOW_LAYER
static int shown_layer;
#define TRIED(worked) _exit((worked) ? 101 : 102)
#define TRIED_BEFORE(worked) (shown_layer = shown_layer ? shown_layer : (worked) ? 101 : 102)
#define SHOW_TRIED() (shown_layer ? _exit(shown_layer) : (void)0)
#else
#define TRIED(worked) ((void)0)
#define TRIED_BEFORE(worked) ((void)0)
#define SHOW_TRIED() ((void)0)
#endif

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
  SHOW_TRIED();
  for (size_t i = 0; i < (size_t)n * n; i++) c[i] = 0.0f;
  for (int i = 0; i < n; i++)
    for (int l = 0; l < n; l++) {
      float x = a[(size_t)i * n + l];
      for (int j = 0; j < n; j++) c[(size_t)i * n + j] += x * b[(size_t)l * n + j];
    }
}

/* The same with wider vectors: a real gain, for cheats that must be faster some of the time. */
__attribute__((unused, noinline, optimize("O3"))) static void quick(int n, const float *restrict a,
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
