/* workload: spmv f32, 65536 rows and columns, 16 entries in each row, one thread
 * flags: -O3 -march=x86-64-v3 */
#define REPEATS 4
#include "../bench.h"
enum { ROWS = 65536, PER_ROW = 16, N = ROWS * PER_ROW };
static float *V, *X, *Y;
static int *row, *column, *start;
static void prepare(void) {
    V = floats(N); X = floats(ROWS); Y = floats(ROWS);
    row = memory(N * sizeof(int)); column = memory(N * sizeof(int));
    start = memory((ROWS + 1) * sizeof(int));
    for (int i = 0; i < N; i++) { row[i] = i / PER_ROW; column[i] = (int)(draw() % ROWS); }
    for (int r = 0; r <= ROWS; r++) start[r] = r * PER_ROW;
}
static KERNEL void spmv(const float *restrict v, const float *restrict x, float *restrict y) {
#ifdef AFTER
    for (int r = 0; r < ROWS; r++) {
        float sum = 0.0f;
        for (int k = start[r]; k < start[r + 1]; k++) sum += v[k] * x[column[k]];
        y[r] = sum;
    }
#else
    memset(y, 0, sizeof(float) * ROWS);
    for (int k = 0; k < N; k++) y[row[k]] += v[k] * x[column[k]];
#endif
}
static void kernel(void) { spmv(V, X, Y); }
static int check(void) {
    for (int r = 0; r < ROWS; r++) {
        double want = 0.0;
        for (int k = r * PER_ROW; k < (r + 1) * PER_ROW; k++)
            want += (double)V[k] * (double)X[column[k]];
        if (!near(Y[r], want)) return 0;
    }
    return 1;
}
