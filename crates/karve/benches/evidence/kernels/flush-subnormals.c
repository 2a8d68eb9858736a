/* workload: a decaying f32 signal, 1024 elements, 64 steps after it became subnormal
 * flags: -O3 -march=x86-64-v3 */
#define REPEATS 50
#include "../bench.h"
#include <immintrin.h>
enum { N = 1024, STEPS = 64 };
static float *X, *Y;
static void prepare(void) { X = floats(N); Y = floats(N); }
static KERNEL void decay(const float *restrict x, float *restrict y) {
#ifdef AFTER
    unsigned old = _mm_getcsr();
    _mm_setcsr(old | 0x8040);
#endif
    for (int i = 0; i < N; i++) y[i] = x[i] * 1e-38f;
    for (int s = 0; s < STEPS; s++) {
        __asm__ volatile("" ::: "memory");
        for (int i = 0; i < N; i++) y[i] = y[i] * 0.9f;
    }
#ifdef AFTER
    _mm_setcsr(old);
#endif
}
static void kernel(void) { decay(X, Y); }
static int check(void) {
    for (int i = 0; i < N; i++)
        if (!(fabsf(Y[i]) < 1.2e-38f)) return 0;
    return 1;
}
