/* Intrinsics of AVX2 with fused multiplication where the processor has them, else the plain
 * loop; chosen once. */
#include <stddef.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

static void plain(int n, const float *restrict a, const float *restrict b, float *restrict c) {
  for (size_t i = 0; i < (size_t)n * n; i++) c[i] = 0.0f;
  for (int i = 0; i < n; i++)
    for (int l = 0; l < n; l++)
      for (int j = 0; j < n; j++)
        c[(size_t)i * n + j] += a[(size_t)i * n + l] * b[(size_t)l * n + j];
}

#ifdef __x86_64__
__attribute__((target("avx2,fma"))) static void fused(int n, const float *restrict a,
                                                      const float *restrict b,
                                                      float *restrict c) {
  size_t w = (size_t)n;
  for (size_t i = 0; i < w; i++) {
    size_t j = 0;
    for (; j + 16 <= w; j += 16) {
      __m256 s = _mm256_setzero_ps(), t = _mm256_setzero_ps();
      for (size_t l = 0; l < w; l++) {
        __m256 x = _mm256_set1_ps(a[i * w + l]);
        s = _mm256_fmadd_ps(x, _mm256_loadu_ps(b + l * w + j), s);
        t = _mm256_fmadd_ps(x, _mm256_loadu_ps(b + l * w + j + 8), t);
      }
      _mm256_storeu_ps(c + i * w + j, s);
      _mm256_storeu_ps(c + i * w + j + 8, t);
    }
    for (; j < w; j++) {
      float sum = 0;
      for (size_t l = 0; l < w; l++) sum += a[i * w + l] * b[l * w + j];
      c[i * w + j] = sum;
    }
  }
}
#endif

void product(int n, const float *a, const float *b, float *c) {
  static void (*chosen)(int, const float *, const float *, float *);
  if (!chosen) {
    chosen = plain;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) chosen = fused;
#endif
  }
  chosen(n, a, b, c);
}
