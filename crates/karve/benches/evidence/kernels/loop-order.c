/* workload: gemm f32 320x320x320, one thread
 * flags: -O3 -march=x86-64-v3 */
#define REPEATS 1
#include "../bench.h"
enum { N = 320 };
static float *A, *B, *C;
static void prepare(void) { A = floats(N * N); B = floats(N * N); C = floats(N * N); }
static KERNEL void gemm(const float *restrict a, const float *restrict b, float *restrict c) {
#ifdef AFTER
    memset(c, 0, sizeof(float) * N * N);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            for (int j = 0; j < N; j++) c[i * N + j] += a[i * N + k] * b[k * N + j];
#else
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0.0f;
            for (int k = 0; k < N; k++) sum += a[i * N + k] * b[k * N + j];
            c[i * N + j] = sum;
        }
#endif
}
static void kernel(void) { gemm(A, B, C); }
#include "../gemm_check.h"
