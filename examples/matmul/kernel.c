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
// karve: knob MR in 1,2,4,6,8,12
#define MR 2

// Columns of the register block (tiled).
// karve: knob NR in 8,16,32,48
#define NR 16

// Steps of k per turn of the inner loop (ikj and tiled).
// karve: knob UNROLL in 1,2,4,8
#define UNROLL 1

// Steps of k per pass over C (tiled).
// karve: knob TILE_K in 16,32,64,128,256
#define TILE_K 128

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

#define INLINE static inline __attribute__((always_inline))

INLINE size_t at_most(size_t limit, size_t x) { return x < limit ? x : limit; }

// A block of C: where it and what it is made of begin, and how far apart their rows are.
// Its columns from `left` up to `right` are stored.
typedef struct {
    size_t depth;
    int is_first;
    const float *a, *b;
    float *c;
    size_t row_of_a, row_of_b, row_of_c;
    size_t left, right;
} Block;

// Columns of B next to each other, as wide as a block: NR, or one vector where fewer than NR remain.
typedef struct {
    size_t start, width, left, right;
    const float *b;
    size_t row_of_b;
} Strip;

enum { STRIPS = TILE_N / NR + VECTORS };

// Adds the product of one column of A and one row of B to the sums.
INLINE void step(size_t rows, size_t vectors, vec sum[MR][VECTORS], const float *const a[MR], size_t k, const float *b,
                 size_t row_of_b) {
#if PREFETCH > 0
    __builtin_prefetch((const void *)((uintptr_t)b + PREFETCH * row_of_b * sizeof *b));
#else
    (void)row_of_b;
#endif
    vec b_row[VECTORS];
    STRAIGHT
    for (size_t v = 0; v < vectors; v++) b_row[v] = *(const loose_vec *)(b + v * LANES);
    STRAIGHT
    for (size_t r = 0; r < rows; r++) {
        const float a_value = a[r][PACK_A ? k * rows : k];
        STRAIGHT
        for (size_t v = 0; v < vectors; v++) sum[r][v] += a_value * b_row[v];
    }
}

// The block gets, or gains if it is not the first time, the product of `depth` columns of A and `depth` rows of B.
INLINE void multiply(size_t rows, size_t vectors, const Block *block) {
    vec sum[MR][VECTORS] = {{{0}}};
    const float *row[MR];
    const float *ALONE b = block->b;
    float *ALONE c = block->c;
    const size_t depth = block->depth, row_of_b = block->row_of_b, row_of_c = block->row_of_c;
    STRAIGHT
    for (size_t r = 0; r < rows; r++) row[r] = block->a + r * block->row_of_a;
    size_t k = 0;
    for (; k + UNROLL <= depth; k += UNROLL) {
        STRAIGHT
        for (size_t u = 0; u < UNROLL; u++) {
            step(rows, vectors, sum, row, k + u, b + (k + u) * row_of_b, row_of_b);
        }
    }
    for (; k < depth; k++) step(rows, vectors, sum, row, k, b + k * row_of_b, row_of_b);

    // Columns before `left` belong to the strip before. They come out the same, so the first time they may be stored.
    const size_t left = block->is_first ? 0 : block->left;
    if (left == 0 && block->right == vectors * LANES) {
        STRAIGHT
        for (size_t r = 0; r < rows; r++) {
            STRAIGHT
            for (size_t v = 0; v < vectors; v++) {
                loose_vec *to = (loose_vec *)(c + r * row_of_c + v * LANES);
                *to = block->is_first ? sum[r][v] : (vec)*to + sum[r][v];
            }
        }
        return;
    }
    float spill[MR][NR];
    memcpy(spill, sum, sizeof spill);
    for (size_t r = 0; r < rows; r++) {
        for (size_t j = left; j < block->right; j++) {
            c[r * row_of_c + j] = block->is_first ? spill[r][j] : c[r * row_of_c + j] + spill[r][j];
        }
    }
}

// A block of MR rows, or below those of 4, 2 or 1: the compiler knows each shape, so that its sums live in registers.
INLINE void multiply_rows(size_t rows, size_t vectors, const Block *block) {
    if (rows == MR) multiply(MR, vectors, block);
    else if (MR > 4 && rows == 4) multiply(4, vectors, block);
    else if (MR > 2 && rows == 2) multiply(2, vectors, block);
    else multiply(1, vectors, block);
}

static size_t rows_of_block(size_t remaining) {
    if (remaining >= MR) return MR;
    return remaining >= 4 ? 4 : remaining >= 2 ? 2 : 1;
}

static __attribute__((noinline)) void multiply_whole(size_t rows, const Block *block) {
    multiply_rows(rows, VECTORS, block);
}

static __attribute__((noinline)) void multiply_narrow(size_t rows, const Block *block) {
    multiply_rows(rows, 1, block);
}

INLINE void copy_strip(size_t width, size_t cols, size_t depth, const float *b, size_t row_of_b, float *to) {
    for (size_t k = 0; k < depth; k++, b += row_of_b, to += width) {
        if (cols == width) memcpy(to, b, width * sizeof *to);
        else for (size_t j = 0; j < width; j++) to[j] = j < cols ? b[j] : 0.0f;
    }
}

// The strip that begins at a column. If less than its width remains, it lies over the one before; if B is narrower, its
// columns behind the last are zeros. `to` is where it is copied to, if it is copied.
static Strip strip_at(size_t column, size_t n, size_t depth, const float *b, float *to) {
    const size_t width = n - column >= NR ? NR : LANES, cols = at_most(width, n), start = at_most(n - cols, column);
    if (!PACK_B && cols == width) return (Strip){start, width, column - start, cols, b + start, n};
    if (width == NR) copy_strip(NR, cols, depth, b + start, n, to);
    else copy_strip(LANES, cols, depth, b + start, n, to);
    return (Strip){start, width, column - start, cols, to, width};
}

// The block of C at a row, in the columns of a strip.
static void multiply_at(size_t i, size_t rows, const Strip *strip, Block block, size_t n, float *C) {
    block.b = strip->b;
    block.row_of_b = strip->row_of_b;
    block.left = strip->left;
    block.right = strip->right;
    block.c = C + i * n + strip->start;
    if (strip->width == NR) multiply_whole(rows, &block);
    else multiply_narrow(rows, &block);
}

// Rows i to i + rows of A, as the block reads them.
static void take_rows(size_t i, size_t rows, const float *A, size_t row_of_a, Block *block) {
    block->a = A + i * row_of_a;
    block->row_of_a = row_of_a;
#if PACK_A
    for (size_t k = 0; k < block->depth; k++) {
        for (size_t r = 0; r < rows; r++) packed_a[k * rows + r] = block->a[r * row_of_a + k];
    }
    block->a = packed_a;
    block->row_of_a = 1;
#else
    (void)rows;
#endif
}

void matmul(int M, int N, int K, const float *ALONE A, const float *ALONE B, float *ALONE C) {
    const size_t m = (size_t)M, n = (size_t)N, whole_depth = (size_t)K;
    Strip strips[STRIPS];
    for (size_t k = 0; k < whole_depth; k += TILE_K) {
        Block block = {.depth = at_most(TILE_K, whole_depth - k), .is_first = k == 0, .row_of_c = n};
        for (size_t tile = 0; tile < n; tile += TILE_N) {
            const size_t end = at_most(n, tile + TILE_N);
            size_t count = 0;
            for (size_t j = tile; j < end; j += strips[count++].width) {
                strips[count] = strip_at(j, n, block.depth, B + k * n, packed_b + (j - tile) * block.depth);
            }
            for (size_t i = 0, rows; i < m; i += rows) {
                rows = rows_of_block(m - i);
                take_rows(i, rows, A + k, whole_depth, &block);
                for (size_t s = 0; s < count; s++) multiply_at(i, rows, &strips[s], block, n, C);
            }
        }
    }
}

#endif
