/* workload: elements above a limit that half of them exceed are kept, f32, 65536 elements
 * flags: -O3 -march=x86-64-v3 */
#define REPEATS 60
#include "../bench.h"
enum { N = 65536 };
static float *X, *Y;
static int count;
static void prepare(void) { X = floats(N); Y = floats(N + 1); }
static KERNEL int keep(const float *restrict x, float *restrict y, float limit) {
    int n = 0;
    for (int i = 0; i < N; i++) {
#ifdef AFTER
        y[n] = x[i];
        n += x[i] >= limit;
#else
        if (x[i] >= limit) y[n++] = x[i];
#endif
    }
    return n;
}
static void kernel(void) { count = keep(X, Y, 0.0f); }
static int check(void) {
    int n = 0;
    for (int i = 0; i < N; i++)
        if (X[i] >= 0.0f && Y[n++] != X[i]) return 0;
    return n == count;
}
