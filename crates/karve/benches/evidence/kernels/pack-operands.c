/* workload: gemm f32 512x512x512 as dot products, one thread
 * flags: -O3 -march=x86-64-v3 -ffast-math */
#define REPEATS 1
#include "../bench.h"
enum { N = 512 };
static float *A, *B, *C, *P;
static void prepare(void) {
    A = floats(N * N); B = floats(N * N); C = floats(N * N); P = floats(N * N);
}
static KERNEL void gemm(const float *restrict a, const float *restrict b, float *restrict c,
                        float *restrict p) {
#ifdef AFTER
    for (int j = 0; j < N; j++)
        for (int k = 0; k < N; k++) p[j * N + k] = b[k * N + j];
#endif
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0.0f;
#ifdef AFTER
            for (int k = 0; k < N; k++) sum += a[i * N + k] * p[j * N + k];
#else
            for (int k = 0; k < N; k++) sum += a[i * N + k] * b[k * N + j];
#endif
            c[i * N + j] = sum;
        }
}
static void kernel(void) { gemm(A, B, C, P); }
#include "../gemm_check.h"
