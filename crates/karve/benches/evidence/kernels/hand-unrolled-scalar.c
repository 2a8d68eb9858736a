/* workload: axpy f32 of 4096 elements, one thread
 * flags: -O3 -march=x86-64-v3 */
#define REPEATS 20000
#include "../bench.h"
enum { N = 4096 };
static float *X, *Y;
static volatile int steps = N;
static void prepare(void) { X = floats(N); Y = floats(N); }
static KERNEL void axpy(const float *x, float *y, float a, int n) {
#ifdef AFTER
    int i = 0;
    for (; i + 3 < n; i += 4) {
        float p = a * x[i] + 0.5f * y[i];
        y[i] = p;
        float q = a * x[i + 1] + 0.5f * y[i + 1];
        y[i + 1] = q;
        float r = a * x[i + 2] + 0.5f * y[i + 2];
        y[i + 2] = r;
        float s = a * x[i + 3] + 0.5f * y[i + 3];
        y[i + 3] = s;
    }
    for (; i < n; i++) y[i] = a * x[i] + 0.5f * y[i];
#else
    for (int i = 0; i < n; i++) y[i] = a * x[i] + 0.5f * y[i];
#endif
}
static void kernel(void) { axpy(X, Y, 0.25f, steps); }
static int check(void) {
    for (int i = 0; i < N; i++) Y[i] = 1.0f;
    kernel();
    for (int i = 0; i < N; i++)
        if (!near(Y[i], 0.25 * (double)X[i] + 0.5)) return 0;
    return 1;
}
