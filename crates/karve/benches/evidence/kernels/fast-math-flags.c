/* workload: dot product f32 of 8192 elements, one thread
 * before: -O3 -march=x86-64-v3
 * after: -O3 -march=x86-64-v3 -ffast-math */
#define REPEATS 3000
#include "../bench.h"
enum { N = 8192 };
static float *X, *Y, S;
static void prepare(void) { X = floats(N); Y = floats(N); }
static KERNEL float dot(const float *restrict x, const float *restrict y) {
    float sum = 0.0f;
    for (int i = 0; i < N; i++) sum += x[i] * y[i];
    return sum;
}
static void kernel(void) { S = dot(X, Y); }
#include "../dot_check.h"
