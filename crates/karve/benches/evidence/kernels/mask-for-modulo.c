/* workload: 65536 reads around a ring of 1024 f32 elements, one thread
 * flags: -O3 -march=x86-64-v3 */
#define REPEATS 100
#include "../bench.h"
enum { N = 65536 };
static float *X, *Y;
static volatile unsigned size = 1024;
static void prepare(void) { X = floats(1024); Y = floats(N); }
static KERNEL void turn(const float *restrict x, float *restrict y, unsigned n, unsigned head) {
#ifdef AFTER
    for (unsigned i = 0; i < N; i++) y[i] = x[(head + i * 7) & (n - 1)];
#else
    for (unsigned i = 0; i < N; i++) y[i] = x[(head + i * 7) % n];
#endif
}
static void kernel(void) { turn(X, Y, size, 5); }
static int check(void) {
    for (unsigned i = 0; i < N; i++)
        if (Y[i] != X[(5 + i * 7) % 1024]) return 0;
    return 1;
}
