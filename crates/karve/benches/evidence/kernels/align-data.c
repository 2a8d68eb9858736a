/* workload: axpy f32 of 2048 elements with vectors of 64 bytes, one thread
 * flags: -O3 -march=x86-64-v4 -mprefer-vector-width=512 */
#define REPEATS 100000
#include "../bench.h"
#ifdef AFTER
#define OFFSET 0
#else
#define OFFSET 1
#endif
enum { N = 2048 };
static float *X, *Y;
static void prepare(void) { X = floats(N + 16) + OFFSET; Y = floats(N + 16) + OFFSET; }
static KERNEL void axpy(const float *restrict x, float *restrict y, float a) {
    for (int i = 0; i < N; i++) y[i] = a * x[i] + 0.5f * y[i];
}
static void kernel(void) { axpy(X, Y, 0.25f); }
static int check(void) {
    for (int i = 0; i < N; i++) Y[i] = 1.0f;
    kernel();
    for (int i = 0; i < N; i++)
        if (!near(Y[i], 0.25 * (double)X[i] + 0.5)) return 0;
    return 1;
}
