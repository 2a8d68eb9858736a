/* workload: f32 array of 64 MiB scaled into another one, one thread
 * flags: -O3 -march=x86-64-v3 */
#define REPEATS 2
#include "../bench.h"
#include <immintrin.h>
enum { N = 1 << 24 };
static float *X, *Y;
static void prepare(void) { X = floats(N); Y = floats(N); }
static KERNEL void scale(const float *restrict x, float *restrict y) {
#ifdef AFTER
    for (int i = 0; i < N; i += 8)
        _mm256_stream_ps(y + i, _mm256_mul_ps(_mm256_load_ps(x + i), _mm256_set1_ps(1.5f)));
    _mm_sfence();
#else
    for (int i = 0; i < N; i++) y[i] = x[i] * 1.5f;
#endif
}
static void kernel(void) { scale(X, Y); }
static int check(void) {
    for (int i = 0; i < N; i++)
        if (!near(Y[i], 1.5 * (double)X[i])) return 0;
    return 1;
}
