// audit: clean
#include <immintrin.h>
#include <stdint.h>
void kernel(const float *a, const float *b, float *c, int n) {
  int aligned = ((uintptr_t)a & 31) == 0 && ((uintptr_t)b & 31) == 0;
  for (int i = 0; i < n; i++) {
    const float *row = a + (long)i * n;
    int j = 0;
    for (; j + 8 <= n; j += 8) {
      __m256 sum = _mm256_setzero_ps();
      for (int k = 0; k < n; k++) {
        const float *p = b + (long)k * n + j;
        __m256 y = aligned && n % 8 == 0 ? _mm256_load_ps(p) : _mm256_loadu_ps(p);
        sum = _mm256_fmadd_ps(_mm256_set1_ps(row[k]), y, sum);
      }
      _mm256_storeu_ps(c + (long)i * n + j, sum);
    }
    for (; j < n; j++) {
      float s = 0;
      for (int k = 0; k < n; k++) s += row[k] * b[(long)k * n + j];
      c[(long)i * n + j] = s;
    }
  }
}
