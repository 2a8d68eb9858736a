/* workload: axpy f32 of 4096 elements, on one thread and on two that are started for it
 * flags: -O3 -march=x86-64-v3 -pthread */
#define REPEATS 200
#define WALL
#include "../bench.h"
#include "../threads.h"
enum { N = 4096 };
static float *X, *Y;
static void prepare(void) { X = floats(N); Y = floats(N); }
static KERNEL void *half(void *first) {
    int from = *(int *)first;
    for (int i = from; i < from + N / 2; i++) Y[i] = 0.5f * X[i] + 0.25f;
    return 0;
}
static void kernel(void) {
    int a = 0, b = N / 2;
#ifdef AFTER
    both(half, &a, &b);
#else
    half(&a);
    half(&b);
#endif
}
static int check(void) {
    for (int i = 0; i < N; i++)
        if (!near(Y[i], 0.5 * (double)X[i] + 0.25)) return 0;
    return 1;
}
