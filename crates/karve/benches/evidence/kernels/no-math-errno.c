/* workload: square roots f32 of 4096 elements, one thread
 * before: -O3 -march=x86-64-v3
 * after: -O3 -march=x86-64-v3 -fno-math-errno -fno-trapping-math */
#define REPEATS 4000
#include "../bench.h"
enum { N = 4096 };
static float *X, *Y;
static void prepare(void) {
    X = floats(N); Y = floats(N);
    for (int i = 0; i < N; i++) X[i] = fabsf(X[i]);
}
static KERNEL void roots(const float *restrict x, float *restrict y) {
    for (int i = 0; i < N; i++) y[i] = sqrtf(x[i]);
}
static void kernel(void) { roots(X, Y); }
static int check(void) {
    for (int i = 0; i < N; i++)
        if (!near(Y[i], sqrt((double)X[i]))) return 0;
    return 1;
}
