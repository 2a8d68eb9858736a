/* workload: a function of another file for each of 4096 f32 elements, one thread
 * compilers: gcc
 * before: -O3 -march=x86-64-v3
 * after: -O3 -march=x86-64-v3 -flto */
#define REPEATS 4000
#include "../bench.h"
enum { N = 4096 };
float blend(float a, float b);
static float *X, *Y;
static void prepare(void) { X = floats(N); Y = floats(N); }
static KERNEL void mix(const float *restrict x, float *restrict y) {
    for (int i = 0; i < N; i++) y[i] = blend(x[i], 0.5f);
}
static void kernel(void) { mix(X, Y); }
static int check(void) {
    for (int i = 0; i < N; i++)
        if (!near(Y[i], (double)X[i] * 0.75 + 0.125)) return 0;
    return 1;
}
