// Tests conv2d on one case, or times it: build/harness test H=128,W=192,F=5 SEED, or bench.
//
// test compares every element with double precision, on the case and on shapes drawn from the seed, between known
// patterns. bench gives every call a new input and an output full of NaN, and recomputes some elements after every
// call; only the call is timed.
#include "kernel.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LARGEST_SIZE = 4096, LARGEST_FILTER = 31 };
enum { DRAWN_SHAPES = 12, LARGEST_DRAWN = 80 };
enum { WARM_UP_CALLS = 1, FEWEST_CALLS = 5, MOST_CALLS = 400, CHECKS_PER_CALL = 4, CHECKS_AT_END = 64 };
enum { GAP = 64 }; // floats between the arrays: a pattern that must stay
static const double ENOUGH_MS = 15.0;  // of timed calls
static const double LONGEST_MS = 60.0; // of everything, once there are FEWEST_CALLS
static const float PATTERN = -7.25e11f;

typedef struct {
    int H, W, F;
} Case;

// The arrays of a case, in one piece of memory with a gap before, between and behind.
typedef struct {
    float *memory, *in, *filter, *out;
    size_t in_count, filter_count, out_count;
} Arrays;

static uint64_t state;

// splitmix64.
static uint64_t next_random(void) {
    uint64_t x = state += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

static size_t random_below(size_t limit) { return (size_t)((next_random() >> 32) * limit >> 32); }

static Arrays arrays_of(Case c) {
    const size_t h = (size_t)c.H, w = (size_t)c.W, f = (size_t)c.F;
    Arrays a = {.in_count = (h + f - 1) * (w + f - 1), .filter_count = f * f, .out_count = h * w};
    const size_t all = a.in_count + a.filter_count + a.out_count + 4 * GAP;
    void *memory = NULL;
    if (posix_memalign(&memory, 4096, all * sizeof(float)) != 0) {
        fprintf(stderr, "out of memory\n");
        exit(2);
    }
    a.memory = memory;
    for (size_t i = 0; i < all; i++) a.memory[i] = PATTERN;
    a.in = a.memory + GAP;
    a.filter = a.in + a.in_count + GAP;
    a.out = a.filter + a.filter_count + GAP;
    return a;
}

static void draw(Arrays *a) {
    for (size_t i = 0; i < a->in_count; i++) a->in[i] = (float)(int32_t)(next_random() >> 32) * 0x1p-31f;
    for (size_t i = 0; i < a->filter_count; i++) a->filter[i] = (float)(int32_t)(next_random() >> 32) * 0x1p-31f;
    memset(a->out, 0xFF, a->out_count * sizeof(float)); // every float NaN
}

static int gaps_are_whole(const Arrays *a) {
    const float *const starts[4] = {a->memory, a->in + a->in_count, a->filter + a->filter_count, a->out + a->out_count};
    for (int g = 0; g < 4; g++) {
        for (int i = 0; i < GAP; i++) {
            if (starts[g][i] != PATTERN) return 0;
        }
    }
    return 1;
}

// A sum of n products in single precision, in any order, differs from the exact one by at most n u / (1 - n u) times
// the sum of the magnitudes, u = 2^-24. False for a result that is not a number, too.
static int is_right(Case c, const Arrays *a, size_t y, size_t x) {
    const size_t f = (size_t)c.F, row = (size_t)c.W + f - 1;
    double exact = 0.0, magnitudes = 0.0;
    for (size_t i = 0; i < f; i++) {
        for (size_t j = 0; j < f; j++) {
            const double product = (double)a->filter[i * f + j] * (double)a->in[(y + i) * row + x + j];
            exact += product;
            magnitudes += fabs(product);
        }
    }
    const float result = a->out[y * (size_t)c.W + x];
    const double nu = (double)(f * f) * 0x1p-24;
    if (fabs((double)result - exact) <= nu / (1.0 - nu) * magnitudes) return 1;
    fprintf(stderr, "H=%d,W=%d,F=%d: out[%zu][%zu] is %.9g, should be %.9g\n", c.H, c.W, c.F, y, x, (double)result,
            exact);
    return 0;
}

static int passes(Case c) {
    Arrays a = arrays_of(c), before = arrays_of(c);
    draw(&a);
    memcpy(before.memory, a.memory, (size_t)(a.out - a.memory) * sizeof(float));
    conv2d(c.H, c.W, c.F, a.in, a.filter, a.out);
    int passed = gaps_are_whole(&a) && memcmp(before.memory, a.memory, (size_t)(a.out - a.memory) * sizeof(float)) == 0;
    if (!passed) fprintf(stderr, "H=%d,W=%d,F=%d: memory besides out was changed\n", c.H, c.W, c.F);
    for (size_t p = 0; passed && p < a.out_count; p++) passed = is_right(c, &a, p / (size_t)c.W, p % (size_t)c.W);
    free(a.memory);
    free(before.memory);
    return passed;
}

static int test(Case given) {
    int passed = passes(given) && passes((Case){1, 1, 1});
    for (int t = 0; passed && t < DRAWN_SHAPES; t++) {
        const int h = 1 + (int)random_below(LARGEST_DRAWN), w = 1 + (int)random_below(LARGEST_DRAWN);
        passed = passes((Case){h, w, 1 + t % 8});
    }
    printf("%s\n", passed ? "PASS" : "FAIL");
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

static int checked(Case c, const Arrays *a, int count) {
    int passed = gaps_are_whole(a);
    for (int t = 0; passed && t < count; t++) passed = is_right(c, a, random_below((size_t)c.H), random_below((size_t)c.W));
    return passed;
}

// The median time of a call.
static double time_ms(Case c, int *passed) {
    Arrays a = arrays_of(c);
    double times[MOST_CALLS], total = 0.0;
    int calls = 0;
    const double start = now_ms();
    for (int turn = 0; calls < MOST_CALLS; turn++) {
        draw(&a);
        const double before = now_ms();
        conv2d(c.H, c.W, c.F, a.in, a.filter, a.out);
        const double after = now_ms();
        *passed = *passed && checked(c, &a, CHECKS_PER_CALL);
        if (turn < WARM_UP_CALLS) continue;
        times[calls++] = after - before;
        total += after - before;
        if (calls >= FEWEST_CALLS && (total >= ENOUGH_MS || after - start >= LONGEST_MS)) break;
    }
    *passed = *passed && checked(c, &a, CHECKS_AT_END);
    free(a.memory);
    qsort(times, (size_t)calls, sizeof *times, by_value);
    return (times[(calls - 1) / 2] + times[calls / 2]) / 2.0;
}

static int parse_case(const char *text, Case *c) {
    int end = 0;
    return sscanf(text, "H=%4d,W=%4d,F=%2d%n", &c->H, &c->W, &c->F, &end) == 3 && text[end] == '\0' && c->H >= 1 &&
           c->W >= 1 && c->F >= 1 && c->H <= LARGEST_SIZE && c->W <= LARGEST_SIZE && c->F <= LARGEST_FILTER;
}

int main(int count, char **arguments) {
    Case c = {0, 0, 0};
    if (count != 4 || !parse_case(arguments[2], &c)) {
        fprintf(stderr, "usage: %s test|bench H=128,W=192,F=5 SEED\n", arguments[0]);
        return 2;
    }
    state = strtoull(arguments[3], NULL, 10);
    if (strcmp(arguments[1], "test") == 0) return test(c) ? 0 : 1;
    int passed = 1;
    const double time = time_ms(c, &passed);
    printf("METRIC time_ms=%.6f case=%s check=%s H=%d W=%d F=%d\n", time, arguments[2], passed ? "PASS" : "FAIL", c.H,
           c.W, c.F);
    return passed ? 0 : 1;
}
