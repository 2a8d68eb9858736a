/* workload: leaky relu f32 of 4096 elements that reports whether one was too large, one thread
 * flags: -O3 -march=x86-64-v3 -fno-trapping-math */
#define REPEATS 10000
#include "../bench.h"
enum { N = 4096 };
static float *X, *Y;
static int good;
static void prepare(void) { X = floats(N); Y = floats(N); }
static KERNEL int relu(const float *restrict x, float *restrict y, float slope) {
#ifdef AFTER
    int large = 0;
    for (int i = 0; i < N; i++) {
        large |= x[i] > 100.0f;
        y[i] = x[i] > 0.0f ? x[i] : slope * x[i];
    }
    return !large;
#else
    for (int i = 0; i < N; i++) {
        if (x[i] > 100.0f) return 0;
        y[i] = x[i] > 0.0f ? x[i] : slope * x[i];
    }
    return 1;
#endif
}
static void kernel(void) { good = relu(X, Y, 0.1f); }
static int check(void) {
    for (int i = 0; i < N; i++)
        if (!near(Y[i], X[i] > 0.0f ? (double)X[i] : 0.1 * (double)X[i])) return 0;
    return good;
}
