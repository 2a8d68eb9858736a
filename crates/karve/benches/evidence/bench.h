/* What the kernels of the evidence share: memory, numbers, a clock, and the main function.
 *
 * A kernel defines REPEATS, prepare(), kernel() and check(), and differs where AFTER is defined.
 *   ./kernel          prints the time of one call
 *   ./kernel check    calls once and compares with a plain reference
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __clang__
#define KERNEL __attribute__((noinline))
#else
#define KERNEL __attribute__((noipa))
#endif

/* CPU time, of each thread where there are several: others on the host do not stretch it. A kernel
 * that waits says WALL. */
#ifdef WALL
#define CLOCK CLOCK_MONOTONIC
#else
#define CLOCK CLOCK_PROCESS_CPUTIME_ID
#endif
#ifndef THREADS
#define THREADS 1
#endif

static void prepare(void);
static void kernel(void);
static int check(void);

static uint64_t state = 88172645463325252ull;

static inline uint32_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32);
}

/* Memory that begins on a page. */
static inline void *memory(size_t bytes) {
    void *at = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (!at) exit(2);
    memset(at, 0, bytes);
    return at;
}

/* Numbers from -1 to 1. */
static inline float *floats(size_t n) {
    float *x = memory(n * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = (float)(int32_t)draw() / 2147483648.0f;
    return x;
}

static inline int near(double got, double want) {
    return fabs(got - want) <= 1e-3 + 1e-3 * fabs(want);
}

int main(int count, char **words) {
    prepare();
    kernel();
    if (count > 1 && !strcmp(words[1], "check")) return check() ? 0 : 1;
    struct timespec a, b;
    clock_gettime(CLOCK, &a);
    for (int i = 0; i < REPEATS; i++) kernel();
    clock_gettime(CLOCK, &b);
    double ms = (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6;
    printf("METRIC time_ms=%.9f\n", ms / REPEATS / THREADS);
    return 0;
}
