/* workload: dot product f32 of 8192 elements, one thread
 * flags: -O3 -march=x86-64-v3 */
#define REPEATS 3000
#include "../bench.h"
enum { N = 8192 };
static float *X, *Y, S;
static void prepare(void) { X = floats(N); Y = floats(N); }
static KERNEL float dot(const float *restrict x, const float *restrict y) {
#ifdef AFTER
    float part[32] = {0}, sum = 0.0f;
    for (int i = 0; i < N; i += 32)
        for (int j = 0; j < 32; j++) part[j] += x[i + j] * y[i + j];
    for (int j = 0; j < 32; j++) sum += part[j];
#else
    float sum = 0.0f;
    for (int i = 0; i < N; i++) sum += x[i] * y[i];
#endif
    return sum;
}
static void kernel(void) { S = dot(X, Y); }
#include "../dot_check.h"
