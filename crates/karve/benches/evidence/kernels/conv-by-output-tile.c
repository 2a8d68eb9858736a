/* workload: convolution f32 of 16384 elements with 9 taps, one thread
 * flags: -O3 -march=x86-64-v3 */
#define REPEATS 400
#include "../bench.h"
enum { N = 16384 };
static float *X, *Y, *W;
static volatile int taps = 9;
static void prepare(void) { X = floats(N + 16); Y = floats(N); W = floats(9); }
static KERNEL void conv(const float *restrict x, const float *restrict w, float *restrict y,
                        int n) {
#ifdef AFTER
    for (int i = 0; i < N; i += 32) {
        float sum[32] = {0};
        for (int t = 0; t < n; t++)
            for (int j = 0; j < 32; j++) sum[j] += w[t] * x[i + t + j];
        for (int j = 0; j < 32; j++) y[i + j] = sum[j];
    }
#else
    for (int i = 0; i < N; i++) {
        float sum = 0.0f;
        for (int t = 0; t < n; t++) sum += w[t] * x[i + t];
        y[i] = sum;
    }
#endif
}
static void kernel(void) { conv(X, W, Y, taps); }
static int check(void) {
    for (int i = 0; i < N; i++) {
        double want = 0.0;
        for (int t = 0; t < 9; t++) want += (double)W[t] * (double)X[i + t];
        if (!near(Y[i], want)) return 0;
    }
    return 1;
}
