/* workload: transpose f32 1024x1024 in tiles of 16, one thread
 * flags: -O3 -march=x86-64-v3 */
#define REPEATS 8
#include "../bench.h"
#ifdef AFTER
enum { N = 1024, T = 16, LD = N + 16 };
#else
enum { N = 1024, T = 16, LD = N };
#endif
static float *X, *Y;
static void prepare(void) { X = floats(N * LD); Y = floats(N * LD); }
static KERNEL void turn(const float *restrict x, float *restrict y) {
    for (int i = 0; i < N; i += T)
        for (int j = 0; j < N; j += T)
            for (int r = i; r < i + T; r++)
                for (int c = j; c < j + T; c++) y[c * LD + r] = x[r * LD + c];
}
static void kernel(void) { turn(X, Y); }
static int check(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            if (Y[j * LD + i] != X[i * LD + j]) return 0;
    return 1;
}
