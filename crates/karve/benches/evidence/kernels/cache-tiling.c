/* workload: transpose f32 2048x2048, one thread
 * flags: -O3 -march=x86-64-v3 */
#define REPEATS 2
#include "../bench.h"
enum { N = 2048, T = 32 };
static float *X, *Y;
static void prepare(void) { X = floats(N * N); Y = floats(N * N); }
static KERNEL void turn(const float *restrict x, float *restrict y) {
#ifdef AFTER
    for (int i = 0; i < N; i += T)
        for (int j = 0; j < N; j += T)
            for (int r = i; r < i + T; r++)
                for (int c = j; c < j + T; c++) y[c * N + r] = x[r * N + c];
#else
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) y[j * N + i] = x[i * N + j];
#endif
}
static void kernel(void) { turn(X, Y); }
static int check(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            if (Y[j * N + i] != X[i * N + j]) return 0;
    return 1;
}
