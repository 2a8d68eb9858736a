/* workload: gather of 1048576 random f32 lines from 128 MiB, with some work each
 * flags: -O3 -march=x86-64-v3 */
#define REPEATS 2
#include "../bench.h"
enum { N = 1 << 20, ROWS = 1 << 21, AHEAD = 32 };
static float *T, S;
static int *I;
static void prepare(void) {
    T = memory((size_t)ROWS * 64);
    for (size_t i = 0; i < (size_t)ROWS; i++) T[i * 16] = (float)(i & 1023);
    I = memory((N + AHEAD) * sizeof *I);
    for (int i = 0; i < N + AHEAD; i++) I[i] = (int)(draw() % ROWS);
}
static KERNEL float walk(const float *restrict t, const int *restrict index) {
    float sum = 0.0f;
    for (int i = 0; i < N; i++) {
#ifdef AFTER
        __builtin_prefetch(&t[(size_t)index[i + AHEAD] * 16]);
#endif
        float v = t[(size_t)index[i] * 16];
        sum = sum * 0.999f + sqrtf(v + 1.0f) / (v + 2.0f) + v / (sum + 3.0f);
    }
    return sum;
}
static void kernel(void) { S = walk(T, I); }
static int check(void) {
    float sum = 0.0f;
    for (int i = 0; i < N; i++) {
        float v = T[(size_t)I[i] * 16];
        sum = sum * 0.999f + sqrtf(v + 1.0f) / (v + 2.0f) + v / (sum + 3.0f);
    }
    return near(S, (double)sum);
}
