/* workload: gemm f32 512x512x512, one thread
 * flags: -O3 -march=x86-64-v3 */
#define REPEATS 2
#include "../bench.h"
enum { N = 512 };
typedef float vector __attribute__((vector_size(32), aligned(4)));
static float *A, *B, *C;
static void prepare(void) { A = floats(N * N); B = floats(N * N); C = floats(N * N); }
static KERNEL void gemm(const float *restrict a, const float *restrict b, float *restrict c) {
#ifdef AFTER
    for (int i = 0; i < N; i += 4)
        for (int j = 0; j < N; j += 16) {
            vector sum[4][2] = {{{0}}};
            for (int k = 0; k < N; k++) {
                const vector left = *(const vector *)&b[k * N + j];
                const vector right = *(const vector *)&b[k * N + j + 8];
#pragma GCC unroll 4
                for (int x = 0; x < 4; x++) {
                    sum[x][0] += a[(i + x) * N + k] * left;
                    sum[x][1] += a[(i + x) * N + k] * right;
                }
            }
            for (int x = 0; x < 4; x++) {
                *(vector *)&c[(i + x) * N + j] = sum[x][0];
                *(vector *)&c[(i + x) * N + j + 8] = sum[x][1];
            }
        }
#else
    memset(c, 0, sizeof(float) * N * N);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            for (int j = 0; j < N; j++) c[i * N + j] += a[i * N + k] * b[k * N + j];
#endif
}
static void kernel(void) { gemm(A, B, C); }
#include "../gemm_check.h"
