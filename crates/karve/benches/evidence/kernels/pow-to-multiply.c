/* workload: cubes f32 of 4096 elements, one thread
 * flags: -O3 -march=x86-64-v3 */
#define REPEATS 400
#include "../bench.h"
enum { N = 4096 };
static float *X, *Y;
static void prepare(void) { X = floats(N); Y = floats(N); }
static KERNEL void cubes(const float *restrict x, float *restrict y) {
#ifdef AFTER
    for (int i = 0; i < N; i++) y[i] = x[i] * x[i] * x[i];
#else
    for (int i = 0; i < N; i++) y[i] = powf(x[i], 3.0f);
#endif
}
static void kernel(void) { cubes(X, Y); }
static int check(void) {
    for (int i = 0; i < N; i++)
        if (!near(Y[i], (double)X[i] * (double)X[i] * (double)X[i])) return 0;
    return 1;
}
