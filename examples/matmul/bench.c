// Times matmul on one case: build/bench M=128,N=128,K=128 SEED
//
// Every call, timed or not, gets new values in A and B and a C full of NaN, and after every call some elements of C are
// recomputed: there is nothing to remember from the call before and nothing to leave out. Only the call is timed.
#include "harness.h"
#include "kernel.h"

#include <time.h>

enum {
    WARM_UP_CALLS = 1,
    FEWEST_CALLS = 5,
    MOST_CALLS = 250, // few enough that a run of a fast kernel is not longer than one of a slow one
    CHECKS_PER_CALL = 4,
    CHECKS_AT_END = 64,
};
static const double ENOUGH_MS = 15.0;   // of timed calls
static const double LONGEST_MS = 60.0;  // of everything, once there are FEWEST_CALLS

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static void fill(Random *random, size_t count, float *values) {
    size_t i = 0;
    for (; i + 2 <= count; i += 2) {
        const uint64_t bits = next_random(random);
        values[i] = unit_float((uint32_t)(bits >> 32));
        values[i + 1] = unit_float((uint32_t)bits);
    }
    if (i < count) values[i] = unit_float((uint32_t)(next_random(random) >> 32));
}

static int check_elements(Random *random, int count, Case c, const float *A, const float *B, const float *C) {
    const size_t n = (size_t)c.N, depth = (size_t)c.K;
    for (int t = 0; t < count; t++) {
        const size_t i = random_below(random, (size_t)c.M), j = random_below(random, n);
        double exact = 0.0, magnitudes = 0.0;
        for (size_t k = 0; k < depth; k++) {
            const double product = (double)A[i * depth + k] * (double)B[k * n + j];
            exact += product;
            magnitudes += product < 0 ? -product : product;
        }
        if (!is_close(C[i * n + j], exact, magnitudes, c.K)) {
            fprintf(stderr, "C[%zu][%zu] is %.9g, should be %.9g\n", i, j, (double)C[i * n + j], exact);
            return 0;
        }
    }
    return 1;
}

static int by_value(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static uint64_t seed;

// The median time of a call.
static double time_ms(Case c, int *passed) {
    const size_t size_a = (size_t)c.M * (size_t)c.K, size_b = (size_t)c.K * (size_t)c.N;
    const size_t size_c = (size_t)c.M * (size_t)c.N;

    // One arena, always laid out alike, so that two runs differ in nothing but the kernel. The gaps keep the matrices
    // from starting at the same place in a page.
    const size_t line = 64 / sizeof(float), gap = 5 * line;
    const size_t start_b = (size_a / line + 1) * line + gap;
    const size_t start_c = start_b + (size_b / line + 1) * line + gap;
    void *arena = NULL;
    if (posix_memalign(&arena, (size_t)1 << 21, (start_c + size_c) * sizeof(float)) != 0) {
        fprintf(stderr, "out of memory\n");
        exit(2);
    }
    float *A = arena, *B = A + start_b, *C = A + start_c;

    Random values = seeded(seed), places = seeded(~seed);
    double times[MOST_CALLS], total = 0.0;
    int calls = 0;
    const double start = now_ms();
    for (int turn = 0;; turn++) {
        fill(&values, size_a, A);
        fill(&values, size_b, B);
        memset(C, 0xFF, size_c * sizeof *C); // every float NaN
        const double before = now_ms();
        matmul(c.M, c.N, c.K, A, B, C);
        const double after = now_ms();
        *passed = *passed && check_elements(&places, CHECKS_PER_CALL, c, A, B, C);
        if (turn < WARM_UP_CALLS) continue;
        times[calls++] = after - before;
        total += after - before;
        if (calls == MOST_CALLS) break;
        if (calls >= FEWEST_CALLS && (total >= ENOUGH_MS || after - start >= LONGEST_MS)) break;
    }
    *passed = *passed && check_elements(&places, CHECKS_AT_END, c, A, B, C);
    free(arena);
    qsort(times, (size_t)calls, sizeof *times, by_value);
    return (times[(calls - 1) / 2] + times[calls / 2]) / 2.0;
}

int main(int count, char **arguments) {
    const Case c = parse_arguments(count, arguments, &seed);
    int passed = 1;
    const double time = time_ms(c, &passed);
    printf("METRIC time_ms=%.6f case=%s check=%s M=%d N=%d K=%d\n", time, arguments[1], passed ? "PASS" : "FAIL", c.M,
           c.N, c.K);
    return passed ? 0 : 1;
}
