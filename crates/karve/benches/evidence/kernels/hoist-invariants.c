/* workload: normalization of a f32 row of 4096 elements by values behind pointers, one thread
 * flags: -O3 -march=x86-64-v3 */
#define REPEATS 2000
#include "../bench.h"
enum { N = 4096 };
struct moments { float mean, variance, eps; };
static struct moments M = {0.1f, 2.0f, 1e-5f};
static float *X, *Y;
static void prepare(void) { X = floats(N); Y = floats(N); }
static KERNEL void normalize(const struct moments *m, const float *x, float *y) {
#ifdef AFTER
    const float mean = m->mean, scale = 1.0f / sqrtf(m->variance + m->eps);
    for (int i = 0; i < N; i++) y[i] = (x[i] - mean) * scale;
#else
    for (int i = 0; i < N; i++) y[i] = (x[i] - m->mean) * (1.0f / sqrtf(m->variance + m->eps));
#endif
}
static void kernel(void) { normalize(&M, X, Y); }
static int check(void) {
    for (int i = 0; i < N; i++)
        if (!near(Y[i], ((double)X[i] - 0.1) / sqrt(2.00001))) return 0;
    return 1;
}
