// Tests stencil on one case, or times it: build/harness test X=64,Y=64,Z=64 SEED, or bench.
//
// test compares every point with double precision, on the case and on grids drawn from the seed, and sees that nothing
// else was written. bench gives every call a new input and new weights, and looks at some points after every call; only
// the call is timed.
#include "kernel.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LARGEST_SIZE = 999, DRAWN_GRIDS = 12, LARGEST_DRAWN = 40 };
enum { WARM_UP_CALLS = 1, FEWEST_CALLS = 5, MOST_CALLS = 200, POINTS_PER_CALL = 16 };
enum { GAP = 1024 }; // floats around the grids: they hold what out holds before a call, and must stay
static const double ENOUGH_MS = 15.0;  // of timed calls
static const double LONGEST_MS = 60.0; // of everything, once there are FEWEST_CALLS
static const float UNTOUCHED = -7.25e11f;

typedef struct {
    int X, Y, Z;
} Case;

typedef struct {
    size_t count;
    float *memory, *in, *out; // GAP, in, GAP, out, GAP
    float centre, side;
} Grids;

static uint64_t state;

// A 64-bit linear congruential generator; only its upper half is used.
static uint32_t next_random(void) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 32);
}

static int random_below(int limit) { return (int)((uint64_t)next_random() * (uint64_t)limit >> 32); }

static float unit(void) { return (float)(int32_t)next_random() * 0x1p-31f; }

static Grids make(Case c) {
    Grids g = {.count = (size_t)c.X * (size_t)c.Y * (size_t)c.Z};
    void *memory = NULL;
    if (posix_memalign(&memory, 4096, (2 * g.count + 3 * GAP) * sizeof(float)) != 0) {
        fprintf(stderr, "out of memory\n");
        exit(2);
    }
    g.memory = memory;
    for (size_t i = 0; i < 2 * g.count + 3 * GAP; i++) g.memory[i] = UNTOUCHED;
    g.in = g.memory + GAP;
    g.out = g.in + g.count + GAP;
    return g;
}

// New weights, a new value for every point of in, and none in out.
static void draw(Grids *g) {
    g->centre = unit();
    g->side = unit();
    for (size_t i = 0; i < g->count; i++) {
        g->in[i] = unit();
        g->out[i] = UNTOUCHED;
    }
}

// Eight roundings, of which each is at most 2^-24 of the sum of the magnitudes so far.
static int is_right(Case c, const Grids *g, int x, int y, int z) {
    const size_t row = (size_t)c.X, plane = row * (size_t)c.Y;
    const size_t p = (size_t)z * plane + (size_t)y * row + (size_t)x;
    double exact = UNTOUCHED, bound = 0.0;
    if (x > 0 && y > 0 && z > 0 && x < c.X - 1 && y < c.Y - 1 && z < c.Z - 1) {
        const size_t at[6] = {p - 1, p + 1, p - row, p + row, p - plane, p + plane};
        exact = (double)g->centre * (double)g->in[p];
        bound = fabs(exact);
        for (int i = 0; i < 6; i++) {
            exact += (double)g->side * (double)g->in[at[i]];
            bound += fabs((double)g->side * (double)g->in[at[i]]);
        }
    }
    if (fabs((double)g->out[p] - exact) <= 8.0 * 0x1p-24 * bound) return 1;
    fprintf(stderr, "X=%d,Y=%d,Z=%d: out at (%d, %d, %d) is %.9g, should be %.9g\n", c.X, c.Y, c.Z, x, y, z,
            (double)g->out[p], exact);
    return 0;
}

static int passes(Case c) {
    Grids g = make(c), before = make(c);
    draw(&g);
    const size_t up_to_out = (GAP + g.count + GAP) * sizeof(float);
    memcpy(before.memory, g.memory, up_to_out);
    stencil(c.X, c.Y, c.Z, g.centre, g.side, g.in, g.out);
    int passed = memcmp(before.memory, g.memory, up_to_out) == 0 &&
                 memcmp(before.memory, g.out + g.count, GAP * sizeof(float)) == 0;
    if (!passed) fprintf(stderr, "X=%d,Y=%d,Z=%d: memory besides out was changed\n", c.X, c.Y, c.Z);
    for (int z = 0; z < c.Z; z++) {
        for (int y = 0; y < c.Y; y++) {
            for (int x = 0; passed && x < c.X; x++) passed = is_right(c, &g, x, y, z);
        }
    }
    free(g.memory);
    free(before.memory);
    return passed;
}

static int test(Case given) {
    int passed = passes(given) && passes((Case){1, 2, 3}) && passes((Case){3, 3, 3});
    for (int t = 0; passed && t < DRAWN_GRIDS; t++) {
        const int x = 1 + random_below(2 * LARGEST_DRAWN), y = 1 + random_below(LARGEST_DRAWN);
        passed = passes((Case){x, y, 1 + random_below(LARGEST_DRAWN)});
    }
    puts(passed ? "PASS" : "FAIL");
    return passed;
}

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static int by_value(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

// The median time of a call.
static double time_ms(Case c, int *passed) {
    Grids g = make(c);
    double times[MOST_CALLS], total = 0.0;
    int calls = 0;
    const double start = now_ms();
    for (int turn = 0; calls < MOST_CALLS; turn++) {
        draw(&g);
        const double before = now_ms();
        stencil(c.X, c.Y, c.Z, g.centre, g.side, g.in, g.out);
        const double after = now_ms();
        for (int i = 0; *passed && i < POINTS_PER_CALL; i++) {
            *passed = is_right(c, &g, random_below(c.X), random_below(c.Y), random_below(c.Z));
        }
        if (turn < WARM_UP_CALLS) continue;
        times[calls++] = after - before;
        total += after - before;
        if (calls >= FEWEST_CALLS && (total >= ENOUGH_MS || after - start >= LONGEST_MS)) break;
    }
    free(g.memory);
    qsort(times, (size_t)calls, sizeof *times, by_value);
    return (times[(calls - 1) / 2] + times[calls / 2]) / 2.0;
}

int main(int count, char **arguments) {
    Case c = {0, 0, 0};
    int end = 0;
    if (count != 4 || sscanf(arguments[2], "X=%3d,Y=%3d,Z=%3d%n", &c.X, &c.Y, &c.Z, &end) != 3 ||
        arguments[2][end] != '\0' || c.X < 1 || c.Y < 1 || c.Z < 1) {
        fprintf(stderr, "usage: %s test|bench X=64,Y=64,Z=64 SEED   (sizes 1 to %d)\n", arguments[0], LARGEST_SIZE);
        return 2;
    }
    state = strtoull(arguments[3], NULL, 10) * UINT64_C(0x9E3779B97F4A7C15) + 1;
    if (strcmp(arguments[1], "test") == 0) return test(c) ? 0 : 1;
    int passed = 1;
    const double time = time_ms(c, &passed);
    printf("METRIC time_ms=%.6f case=%s check=%s X=%d Y=%d Z=%d\n", time, arguments[2], passed ? "PASS" : "FAIL", c.X,
           c.Y, c.Z);
    return passed ? 0 : 1;
}
