/* workload: sum of 16777216 elements, stored as f32 and as f16, one thread
 * flags: -O3 -march=x86-64-v3 */
#define REPEATS 2
#include "../bench.h"
#include <immintrin.h>
enum { N = 1 << 24 };
static float *X, S;
static unsigned short *H;
static void prepare(void) {
    X = floats(N);
    H = memory(sizeof *H * N);
    for (int i = 0; i < N; i += 8)
        _mm_store_si128((__m128i *)(H + i), _mm256_cvtps_ph(_mm256_load_ps(X + i), 0));
}
static KERNEL float sum(void) {
    __m256 part[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
                      _mm256_setzero_ps()};
    for (int i = 0; i < N; i += 32)
        for (int j = 0; j < 4; j++) {
#ifdef AFTER
            __m256 x = _mm256_cvtph_ps(_mm_load_si128((const __m128i *)(H + i + 8 * j)));
#else
            __m256 x = _mm256_load_ps(X + i + 8 * j);
#endif
            part[j] = _mm256_add_ps(part[j], x);
        }
    float lanes[32], all = 0.0f;
    for (int j = 0; j < 4; j++) _mm256_storeu_ps(lanes + 8 * j, part[j]);
    for (int j = 0; j < 32; j++) all += lanes[j];
    return all;
}
static void kernel(void) { S = sum(); }
static int check(void) {
    double want = 0.0;
    for (int i = 0; i < N; i++) want += (double)X[i];
    return fabs((double)S - want) < 16.0;
}
