/* workload: rows divided by their scale, f32, 4096 elements, one thread
 * flags: -O3 -march=x86-64-v3 */
#define REPEATS 10000
#include "../bench.h"
enum { N = 4096 };
static float *X, *Y;
static volatile float D = 3.0f;
static void prepare(void) { X = floats(N); Y = floats(N); }
static KERNEL void scale(const float *restrict x, float *restrict y, float d) {
#ifdef AFTER
    const float r = 1.0f / d;
    for (int i = 0; i < N; i++) y[i] = x[i] * r;
#else
    for (int i = 0; i < N; i++) y[i] = x[i] / d;
#endif
}
static void kernel(void) { scale(X, Y, D); }
static int check(void) {
    for (int i = 0; i < N; i++)
        if (!near(Y[i], (double)X[i] / 3.0)) return 0;
    return 1;
}
