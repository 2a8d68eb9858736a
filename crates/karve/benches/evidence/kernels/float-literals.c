/* workload: three weighted f32 channels to one, 4096 pixels, one thread
 * flags: -O3 -march=x86-64-v3 */
#define REPEATS 8000
#include "../bench.h"
enum { N = 4096 };
static float *R, *G, *B, *Y;
static void prepare(void) { R = floats(N); G = floats(N); B = floats(N); Y = floats(N); }
static KERNEL void grey(const float *restrict r, const float *restrict g,
                        const float *restrict b, float *restrict y) {
#ifdef AFTER
    for (int i = 0; i < N; i++) y[i] = 0.299f * r[i] + 0.587f * g[i] + 0.114f * b[i];
#else
    for (int i = 0; i < N; i++) y[i] = 0.299 * r[i] + 0.587 * g[i] + 0.114 * b[i];
#endif
}
static void kernel(void) { grey(R, G, B, Y); }
static int check(void) {
    for (int i = 0; i < N; i++)
        if (!near(Y[i], 0.299 * (double)R[i] + 0.587 * (double)G[i] + 0.114 * (double)B[i]))
            return 0;
    return 1;
}
