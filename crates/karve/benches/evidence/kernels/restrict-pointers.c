/* workload: matrix times vector f32 256x256, one thread
 * flags: -O3 -march=x86-64-v3 -ffast-math */
#define REPEATS 2000
#include "../bench.h"
enum { N = 256 };
static float *A, *X, *Y;
static void prepare(void) { A = floats(N * N); X = floats(N); Y = floats(N); }
#ifdef AFTER
#define ALONE restrict
#else
#define ALONE
#endif
static KERNEL void multiply(const float *ALONE a, const float *ALONE x, float *ALONE y, int n) {
    for (int i = 0; i < n; i++) {
        y[i] = 0.0f;
        for (int j = 0; j < n; j++) y[i] += a[i * n + j] * x[j];
    }
}
static void kernel(void) { multiply(A, X, Y, N); }
static int check(void) {
    for (int i = 0; i < N; i++) {
        double want = 0.0;
        for (int j = 0; j < N; j++) want += (double)A[i * N + j] * (double)X[j];
        if (!near(Y[i], want)) return 0;
    }
    return 1;
}
