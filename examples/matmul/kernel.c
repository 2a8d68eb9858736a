// Single-precision matrix multiply with its choices declared as knobs.
// karve edits the value below a "karve: knob" line; by hand works just as well.
#include "kernel.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// The algorithm. naive: the textbook's three loops. ikj: add multiples of rows of B to a row of C.
// tiled: keep a block of MR x NR elements of C in registers.
// karve: knob ORDER in naive,ikj,tiled
#define ORDER naive

// Rows of the register block (tiled).
// karve: knob MR in 1,2,4,6,8
#define MR 2

// Columns of the register block (tiled).
// karve: knob NR in 8,16,32,48
#define NR 16

// Steps of k per turn of the inner loop (ikj and tiled).
// karve: knob UNROLL in 1,2,4,8
#define UNROLL 1

// Steps of k per pass over C (tiled).
// karve: knob TILE_K in 16,32,64,128,256
#define TILE_K 32

// Columns of B per pass over A (tiled).
// karve: knob TILE_N in 96,192,384
#define TILE_N 96

// What is first copied into the order in which the block reads it (tiled): nothing, B, or A and B.
// karve: knob PACK in none,b,ab
#define PACK none

// Fetch B into the cache this many steps of k ahead (tiled); 0 leaves it to the hardware.
// karve: knob PREFETCH in 0,4,16
#define PREFETCH 0

// Promise the compiler that A, B and C do not overlap.
// karve: knob RESTRICT in off,on
#define RESTRICT off

// ---- From words to numbers -------------------------------------------------------------------------------------

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define IS_naive 1
#define IS_ikj 2
#define IS_tiled 3
#define IS_off 0
#define IS_on 1
#define IS_none 0
#define IS_b 1
#define IS_ab 2
#define ALGORITHM JOIN(IS_, ORDER)
#define PACK_B (JOIN(IS_, PACK) >= IS_b)
#define PACK_A (JOIN(IS_, PACK) >= IS_ab)

#if JOIN(IS_, RESTRICT) == IS_on
#define ALONE restrict
#else
#define ALONE
#endif

// Goes before a loop with few and constantly many turns: it becomes straight code, so that what it indexes can live
// in registers.
#if defined(__clang__)
#define STRAIGHT _Pragma("clang loop unroll(full)")
#else
#define STRAIGHT _Pragma("GCC unroll 16")
#endif

// ---- naive -----------------------------------------------------------------------------------------------------

#if ALGORITHM == IS_naive

void matmul(int M, int N, int K, const float *ALONE A, const float *ALONE B, float *ALONE C) {
    const size_t m = (size_t)M, n = (size_t)N, depth = (size_t)K;
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) {
            C[i * n + j] = 0.0f;
            for (size_t k = 0; k < depth; k++) {
                C[i * n + j] += A[i * depth + k] * B[k * n + j];
            }
        }
    }
}

// ---- ikj -------------------------------------------------------------------------------------------------------

#elif ALGORITHM == IS_ikj

void matmul(int M, int N, int K, const float *ALONE A, const float *ALONE B, float *ALONE C) {
    const size_t m = (size_t)M, n = (size_t)N, depth = (size_t)K;
    for (size_t i = 0; i < m; i++) {
        const float *a = A + i * depth;
        float *ALONE c = C + i * n;
        memset(c, 0, n * sizeof *c);
        size_t k = 0;
        for (; k + UNROLL <= depth; k += UNROLL) {
            float factor[UNROLL];
            STRAIGHT
            for (size_t u = 0; u < UNROLL; u++) {
                factor[u] = a[k + u];
            }
            for (size_t j = 0; j < n; j++) {
                float sum = c[j];
                STRAIGHT
                for (size_t u = 0; u < UNROLL; u++) {
                    sum += factor[u] * B[(k + u) * n + j];
                }
                c[j] = sum;
            }
        }
        for (; k < depth; k++) {
            const float factor = a[k];
            for (size_t j = 0; j < n; j++) {
                c[j] += factor * B[k * n + j];
            }
        }
    }
}

// ---- tiled -----------------------------------------------------------------------------------------------------

#elif ALGORITHM == IS_tiled

_Static_assert(TILE_N % NR == 0, "a tile of B is cut into strips of NR columns");

// A vector is as wide as the target's registers, and no wider than the block.
#if defined(__AVX512F__) && NR >= 16
#define LANES 16
#elif defined(__AVX__) && NR >= 8
#define LANES 8
#else
#define LANES 4
#endif
#define VECTORS (NR / LANES)

typedef float vec __attribute__((vector_size(LANES * sizeof(float))));
typedef float loose_vec __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

static _Thread_local float packed_b[TILE_K * TILE_N] __attribute__((aligned(64)));
#if PACK_A
static _Thread_local float packed_a[TILE_K * MR] __attribute__((aligned(64)));
#endif

static inline size_t at_most(size_t limit, size_t x) { return x < limit ? x : limit; }

// Copies columns 0..cols of `depth` rows of B, and zeros up to NR columns.
static void pack_strip(size_t depth, size_t cols, const float *ALONE b, size_t row_of_b, float *ALONE to) {
    for (size_t k = 0; k < depth; k++) {
        if (cols == NR) {
            memcpy(to + k * NR, b + k * row_of_b, NR * sizeof *to);
            continue;
        }
        for (size_t j = 0; j < NR; j++) {
            to[k * NR + j] = j < cols ? b[k * row_of_b + j] : 0.0f;
        }
    }
}

// Adds the product of one column of A and one row of B to the sums.
static inline __attribute__((always_inline)) void step(vec sum[MR][VECTORS], const float *const a[MR], size_t k,
                                                       const float *b, size_t row_of_b) {
#if PREFETCH > 0
    __builtin_prefetch((const void *)((uintptr_t)b + PREFETCH * row_of_b * sizeof *b));
#else
    (void)row_of_b;
#endif
    vec b_row[VECTORS];
    STRAIGHT
    for (size_t v = 0; v < VECTORS; v++) {
        b_row[v] = *(const loose_vec *)(b + v * LANES);
    }
    STRAIGHT
    for (size_t r = 0; r < MR; r++) {
        const float a_value = a[r][PACK_A ? k * MR : k];
        STRAIGHT
        for (size_t v = 0; v < VECTORS; v++) {
            sum[r][v] += a_value * b_row[v];
        }
    }
}

// The block at c gets (first), or gains, the product of `depth` columns of A and `depth` rows of B.
// Of its MR x NR elements rows x cols exist; a row beyond the last repeats the last, and is not stored.
static void block(size_t depth, size_t rows, size_t cols, int first, const float *ALONE a, size_t row_of_a,
                  const float *ALONE b, size_t row_of_b, float *ALONE c, size_t row_of_c) {
    vec sum[MR][VECTORS] = {{{0}}};
    const float *row[MR];
    STRAIGHT
    for (size_t r = 0; r < MR; r++) {
        row[r] = a + (PACK_A ? r : at_most(rows - 1, r) * row_of_a);
    }
    size_t k = 0;
    for (; k + UNROLL <= depth; k += UNROLL) {
        STRAIGHT
        for (size_t u = 0; u < UNROLL; u++) {
            step(sum, row, k + u, b + (k + u) * row_of_b, row_of_b);
        }
    }
    for (; k < depth; k++) {
        step(sum, row, k, b + k * row_of_b, row_of_b);
    }

    if (rows == MR && cols == NR) {
        STRAIGHT
        for (size_t r = 0; r < MR; r++) {
            STRAIGHT
            for (size_t v = 0; v < VECTORS; v++) {
                loose_vec *to = (loose_vec *)(c + r * row_of_c + v * LANES);
                *to = first ? sum[r][v] : (vec)*to + sum[r][v];
            }
        }
        return;
    }
    float spill[MR][NR];
    memcpy(spill, sum, sizeof spill);
    for (size_t r = 0; r < rows; r++) {
        for (size_t j = 0; j < cols; j++) {
            c[r * row_of_c + j] = first ? spill[r][j] : c[r * row_of_c + j] + spill[r][j];
        }
    }
}

void matmul(int M, int N, int K, const float *ALONE A, const float *ALONE B, float *ALONE C) {
    const size_t m = (size_t)M, n = (size_t)N, whole_depth = (size_t)K;
    for (size_t k = 0; k < whole_depth; k += TILE_K) {
        const size_t depth = at_most(TILE_K, whole_depth - k);
        for (size_t tile = 0; tile < n; tile += TILE_N) {
            const size_t width = at_most(TILE_N, n - tile);
            for (size_t j = 0; j < width; j += NR) {
                const size_t cols = at_most(NR, width - j);
                if (PACK_B || cols < NR) { // the block always reads NR columns
                    pack_strip(depth, cols, B + k * n + tile + j, n, packed_b + j * depth);
                }
            }
            for (size_t i = 0; i < m; i += MR) {
                const size_t rows = at_most(MR, m - i);
                const float *a = A + i * whole_depth + k;
#if PACK_A
                for (size_t p = 0; p < depth; p++) {
                    for (size_t r = 0; r < MR; r++) {
                        packed_a[p * MR + r] = a[at_most(rows - 1, r) * whole_depth + p];
                    }
                }
                a = packed_a;
#endif
                for (size_t j = 0; j < width; j += NR) {
                    const size_t cols = at_most(NR, width - j);
                    const int is_packed = PACK_B || cols < NR;
                    const float *b = is_packed ? packed_b + j * depth : B + k * n + tile + j;
                    block(depth, rows, cols, k == 0, a, whole_depth, b, is_packed ? NR : n,
                          C + i * n + tile + j, n);
                }
            }
        }
    }
}

#endif
