// A 7-point stencil in single precision with its choices declared as knobs.
// karve edits the value below a "karve: knob" line; by hand works just as well.
#include "kernel.h"

#include <stddef.h>

// Which way it goes. columns: along z, the far way in memory. rows: along x, in blocks of ROWS x WIDE vectors.
// march: along z with such a block, which keeps the points below, here and above in registers.
// karve: knob ORDER in columns,rows,march
#define ORDER columns

// Rows of a block (rows and march).
// karve: knob ROWS in 1,2,4,8
#define ROWS 1

// Vectors in a row of a block (rows and march).
// karve: knob WIDE in 1,2,4
#define WIDE 1

// Elements of a vector (rows and march).
// karve: knob LANES in 4,8,16
#define LANES 4

// Fetch what lies this many planes above (rows and march); 0 leaves it to the hardware.
// karve: knob PREFETCH in 0,2,3
#define PREFETCH 0

// Vectors wider than every processor has are for those that have them.
// karve: restrict LANES == 4 or ARCH != 'none'
// The knobs of a block stay as they are where there is none.
// karve: restrict ORDER != 'columns' or ROWS == 1 and WIDE == 1 and LANES == 4 and PREFETCH == 0
// A block that marches holds three times as much.
// karve: restrict ORDER != 'march' or ROWS * WIDE <= 16

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define IS_columns 1
#define IS_rows 2
#define IS_march 3
#define ALGORITHM JOIN(IS_, ORDER)

#define INLINE static inline __attribute__((always_inline))

// What every order needs to know of the grid and of the weights.
typedef struct {
    size_t x_end, y_end, z_end; // one behind the last point inside
    size_t row, plane;          // how far the next row and the next plane are
    float centre, side;
} Grid;

// ---- columns, and grids too small for a block ------------------------------------------------------------------

INLINE void columns(Grid g, const float *in, float *out) {
    for (size_t x = 1; x < g.x_end; x++) {
        for (size_t y = 1; y < g.y_end; y++) {
            for (size_t z = 1; z < g.z_end; z++) {
                const size_t p = z * g.plane + y * g.row + x;
                const float sides = in[p - 1] + in[p + 1] + in[p - g.row] + in[p + g.row] + in[p - g.plane] +
                                    in[p + g.plane];
                out[p] = g.centre * in[p] + g.side * sides;
            }
        }
    }
}

#if ALGORITHM == IS_columns

#define sweep columns

#else

// ---- blocks ----------------------------------------------------------------------------------------------------

// Goes before a loop that becomes straight code, so that what it indexes can live in registers.
#if defined(__clang__)
#define STRAIGHT _Pragma("clang loop unroll(full)")
#else
#define STRAIGHT _Pragma("GCC unroll 16")
#endif

typedef float vec __attribute__((vector_size(LANES * sizeof(float))));
typedef float loose_vec __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));
typedef struct {
    vec at[ROWS][WIDE];
} Block;

enum { COLUMNS = LANES * WIDE };

INLINE vec get(const float *from) { return *(const loose_vec *)from; }

INLINE size_t at_most(size_t limit, size_t x) { return x < limit ? x : limit; }

INLINE void load(const Grid *g, const float *from, Block *block) {
    STRAIGHT
    for (size_t r = 0; r < ROWS; r++) {
#if PREFETCH > 0
        __builtin_prefetch(from + (PREFETCH - 1) * g->plane + r * g->row);
#endif
        STRAIGHT
        for (size_t v = 0; v < WIDE; v++) block->at[r][v] = get(from + r * g->row + v * LANES);
    }
}

// One block of out, whose first point is p, from the blocks of in below it, there, and above it.
INLINE void write(const Grid *g, const Block planes[3], const float *p, float *out) {
    STRAIGHT
    for (size_t r = 0; r < ROWS; r++) {
        STRAIGHT
        for (size_t v = 0; v < WIDE; v++) {
            const float *here = p + r * g->row + v * LANES;
            const vec south = r == 0 ? get(here - g->row) : planes[1].at[r - 1][v];
            const vec north = r + 1 == ROWS ? get(here + g->row) : planes[1].at[r + 1][v];
            const vec sides = get(here - 1) + get(here + 1) + south + north + planes[0].at[r][v] + planes[2].at[r][v];
            *(loose_vec *)(out + r * g->row + v * LANES) = g->centre * planes[1].at[r][v] + g->side * sides;
        }
    }
}

// The blocks at (x, y) of the planes from z up to z_end.
INLINE void march(const Grid *g, size_t x, size_t y, size_t z, size_t z_end, const float *in, float *out) {
    Block planes[3];
    size_t p = z * g->plane + y * g->row + x;
    load(g, in + p - g->plane, &planes[0]);
    load(g, in + p, &planes[1]);
    for (; z < z_end; z++, p += g->plane) {
        load(g, in + p + g->plane, &planes[2]);
        write(g, planes, in + p, out + p);
        planes[0] = planes[1];
        planes[1] = planes[2];
    }
}

// The last block of a row, and of a column, lies over the one before where it would not fit.
INLINE void planes(const Grid *g, size_t z, size_t z_end, const float *in, float *out) {
    for (size_t next_y = 1; next_y < g->y_end; next_y += ROWS) {
        const size_t y = at_most(g->y_end - ROWS, next_y);
        for (size_t next_x = 1; next_x < g->x_end; next_x += COLUMNS) {
            march(g, at_most(g->x_end - COLUMNS, next_x), y, z, z_end, in, out);
        }
    }
}

INLINE void sweep(Grid g, const float *in, float *out) {
    if (g.y_end < ROWS + 1 || g.x_end < COLUMNS + 1) {
        columns(g, in, out);
        return;
    }
#if ALGORITHM == IS_march
    planes(&g, 1, g.z_end, in, out);
#else
    for (size_t z = 1; z < g.z_end; z++) planes(&g, z, z + 1, in, out);
#endif
}

#endif

// ---- all -------------------------------------------------------------------------------------------------------

void stencil(int X, int Y, int Z, float centre, float side, const float *in, float *out) {
    if (X < 3 || Y < 3 || Z < 3) return;
    const size_t row = (size_t)X, plane = row * (size_t)Y;
    sweep((Grid){row - 1, (size_t)Y - 1, (size_t)Z - 1, row, plane, centre, side}, in, out);
}
