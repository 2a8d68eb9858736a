/* workload: scale, add and clamp f32 of 4194304 elements, one thread
 * flags: -O3 -march=x86-64-v3 */
#define REPEATS 4
#include "../bench.h"
enum { N = 1 << 22 };
static float *X, *Y, *T;
static void prepare(void) { X = floats(N); Y = floats(N); T = floats(N); }
static KERNEL void pass(const float *restrict x, float *restrict t, float *restrict y) {
#ifdef AFTER
    (void)t;
    for (int i = 0; i < N; i++) {
        float v = 1.5f * x[i] + 0.25f;
        y[i] = v > 0.0f ? v : 0.0f;
    }
#else
    for (int i = 0; i < N; i++) t[i] = 1.5f * x[i];
    __asm__ volatile("" ::: "memory");
    for (int i = 0; i < N; i++) t[i] = t[i] + 0.25f;
    __asm__ volatile("" ::: "memory");
    for (int i = 0; i < N; i++) y[i] = t[i] > 0.0f ? t[i] : 0.0f;
#endif
}
static void kernel(void) { pass(X, T, Y); }
static int check(void) {
    for (int i = 0; i < N; i++)
        if (!near(Y[i], fmax(1.5 * (double)X[i] + 0.25, 0.0))) return 0;
    return 1;
}
