// 2-D convolution in single precision with its choices declared as knobs.
// karve edits the value below a "karve: knob" line; by hand works just as well.
#include "kernel.h"

#include <stddef.h>

// The algorithm. pixels: one element after the other. rows: add multiples of rows of the input to a row of the output.
// blocks: keep a block of BY x BX elements of the output in registers.
// karve: knob ORDER in pixels,rows,blocks
#define ORDER pixels

// Rows of the register block (blocks).
// karve: knob BY in 1,2,4,6,8
#define BY 2

// Columns of the register block (blocks).
// karve: knob BX in 8,16,32,48,64
#define BX 16

// Elements of a vector (blocks).
// karve: knob LANES in 4,8,16
#define LANES 4

// How a block goes over the input (blocks). again: each of its rows loads what it needs. once: a row of the input is
// loaded once, for all rows of the block that need it.
// karve: knob LOADS in again,once
#define LOADS again

// Columns of the output per pass over its rows (blocks).
// karve: knob TILE_W in 96,192,384
#define TILE_W 96

// Fetch the input this many columns ahead (blocks); 0 leaves it to the hardware.
// karve: knob PREFETCH in 0,64,128
#define PREFETCH 0

// Filter sizes that the compiler knows: none, or 3, 5 and 7 get a copy of the loops each.
// karve: knob FILTER in any,known
#define FILTER any

// How often the compiler repeats the body of the innermost loop.
// karve: knob UNROLL in 1,2,4
#define UNROLL 1

// karve: restrict BX % LANES == 0
// karve: restrict TILE_W % BX == 0
// The sums of a block fit into 32 registers.
// karve: restrict BY * BX <= 32 * LANES
// Vectors wider than every processor has are for those that have them.
// karve: restrict LANES == 4 or ARCH != 'none'
// The other orders have no blocks: their knobs stay as they are.
// karve: restrict ORDER == 'blocks' or BY == 2 and BX == 16 and LANES == 4 and LOADS == 'again'
// karve: restrict ORDER == 'blocks' or TILE_W == 96 and PREFETCH == 0

// ---- From words to numbers -------------------------------------------------------------------------------------

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define IS_pixels 1
#define IS_rows 2
#define IS_blocks 3
#define IS_again 0
#define IS_once 1
#define IS_any 0
#define IS_known 1
#define ALGORITHM JOIN(IS_, ORDER)

// STRAIGHT goes before a loop that becomes straight code, so that what it indexes can live in registers; REPEATED
// before the innermost of the others.
#define PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define STRAIGHT _Pragma("clang loop unroll(full)")
#define REPEAT(times) PRAGMA(clang loop unroll_count(times))
#else
#define STRAIGHT _Pragma("GCC unroll 16")
#define REPEAT(times) PRAGMA(GCC unroll times)
#endif
#define REPEATED REPEAT(UNROLL)

#define INLINE static inline __attribute__((always_inline))

// ---- One row after the other -----------------------------------------------------------------------------------

#if ALGORITHM == IS_rows

INLINE void whole(size_t h, size_t w, size_t f, const float *restrict in, const float *filter, float *restrict out) {
    const size_t row = w + f - 1;
    for (size_t y = 0; y < h; y++) {
        for (size_t x = 0; x < w; x++) out[y * w + x] = 0.0f;
        for (size_t i = 0; i < f; i++) {
            for (size_t j = 0; j < f; j++) {
                const float factor = filter[i * f + j];
                REPEATED
                for (size_t x = 0; x < w; x++) out[y * w + x] += factor * in[(y + i) * row + x + j];
            }
        }
    }
}

#else

// ---- One element after the other -------------------------------------------------------------------------------

INLINE void pixels(size_t h, size_t w, size_t f, const float *in, const float *filter, float *out) {
    const size_t row = w + f - 1;
    for (size_t y = 0; y < h; y++) {
        for (size_t x = 0; x < w; x++) {
            float sum = 0.0f;
            for (size_t i = 0; i < f; i++) {
                REPEATED
                for (size_t j = 0; j < f; j++) sum += filter[i * f + j] * in[(y + i) * row + x + j];
            }
            out[y * w + x] = sum;
        }
    }
}

#if ALGORITHM == IS_pixels

#define whole pixels

#else

// ---- One block after the other ---------------------------------------------------------------------------------

#define VECTORS (BX / LANES)

typedef float vec __attribute__((vector_size(LANES * sizeof(float))));
typedef float loose_vec __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

INLINE void load(vec to[VECTORS], const float *from) {
    STRAIGHT
    for (size_t v = 0; v < VECTORS; v++) to[v] = *(const loose_vec *)(from + v * LANES);
}

INLINE void add(vec sum[VECTORS], float factor, const vec part[VECTORS]) {
    STRAIGHT
    for (size_t v = 0; v < VECTORS; v++) sum[v] += factor * part[v];
}

INLINE void fetch(const float *from) {
#if PREFETCH > 0
    __builtin_prefetch(from + PREFETCH);
#else
    (void)from;
#endif
}

// The block at out, whose first element is made from the F x F elements at in.
INLINE void block(size_t f, const float *in, size_t row, const float *filter, float *out, size_t w) {
    vec sum[BY][VECTORS] = {{{0}}};
    vec part[VECTORS];
#if JOIN(IS_, LOADS) == IS_once
    for (size_t r = 0; r < BY + f - 1; r++) {
        fetch(in + r * row);
        REPEATED
        for (size_t j = 0; j < f; j++) {
            load(part, in + r * row + j);
            STRAIGHT
            for (size_t b = 0; b < BY; b++) {
                if (r - b < f) add(sum[b], filter[(r - b) * f + j], part); // r < b wraps, and is no less than f
            }
        }
    }
#else
    for (size_t i = 0; i < f; i++) {
        fetch(in + (i + BY - 1) * row);
        REPEATED
        for (size_t j = 0; j < f; j++) {
            STRAIGHT
            for (size_t b = 0; b < BY; b++) {
                load(part, in + (b + i) * row + j);
                add(sum[b], filter[i * f + j], part);
            }
        }
    }
#endif
    STRAIGHT
    for (size_t b = 0; b < BY; b++) {
        STRAIGHT
        for (size_t v = 0; v < VECTORS; v++) *(loose_vec *)(out + b * w + v * LANES) = sum[b][v];
    }
}

INLINE size_t at_most(size_t limit, size_t x) { return x < limit ? x : limit; }

// The last block of a row, and of a column, lies over the one before where it would not fit.
INLINE void whole(size_t h, size_t w, size_t f, const float *in, const float *filter, float *out) {
    const size_t row = w + f - 1;
    if (h < BY || w < BX) {
        pixels(h, w, f, in, filter, out);
        return;
    }
    for (size_t tile = 0; tile < w; tile += TILE_W) {
        const size_t end = at_most(w, tile + TILE_W);
        for (size_t next_y = 0; next_y < h; next_y += BY) {
            const size_t y = at_most(h - BY, next_y);
            for (size_t next_x = tile; next_x < end; next_x += BX) {
                const size_t x = at_most(w - BX, next_x);
                block(f, in + y * row + x, row, filter, out + y * w + x, w);
            }
        }
    }
}

#endif
#endif

// ---- All -------------------------------------------------------------------------------------------------------

void conv2d(int H, int W, int F, const float *in, const float *filter, float *out) {
    const size_t h = (size_t)H, w = (size_t)W, f = (size_t)F;
#if JOIN(IS_, FILTER) == IS_known
    switch (F) {
    case 3: whole(h, w, 3, in, filter, out); return;
    case 5: whole(h, w, 5, in, filter, out); return;
    case 7: whole(h, w, 7, in, filter, out); return;
    default: break;
    }
#endif
    whole(h, w, f, in, filter, out);
}
