/* workload: sums of the columns of a row-major f32 matrix 2048x2048, one thread
 * flags: -O3 -march=x86-64-v3 */
#define REPEATS 2
#include "../bench.h"
enum { N = 2048 };
static float *X, *S;
static void prepare(void) { X = floats(N * N); S = floats(N); }
static KERNEL void sums(const float *restrict x, float *restrict s) {
#ifdef AFTER
    for (int j = 0; j < N; j++) {
        float sum = 0.0f;
        for (int i = 0; i < N; i++) sum += x[i * N + j];
        s[j] = sum;
    }
#else
    memset(s, 0, sizeof(float) * N);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) s[j] += x[i * N + j];
#endif
}
static void kernel(void) { sums(X, S); }
static int check(void) {
    for (int j = 0; j < N; j++) {
        double want = 0.0;
        for (int i = 0; i < N; i++) want += (double)X[i * N + j];
        if (!near(S[j], want)) return 0;
    }
    return 1;
}
