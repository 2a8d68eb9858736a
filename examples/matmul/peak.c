// What one core can do at most, measured: multiply-adds without memory, and memory with hardly any arithmetic.
// The best of many short windows counts, so that a disturbed machine does not lower it.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__AVX512F__)
enum { LANES = 16, CHAINS = 24 };
#elif defined(__AVX__)
enum { LANES = 8, CHAINS = 12 };
#elif defined(__aarch64__)
enum { LANES = 4, CHAINS = 24 };
#else
enum { LANES = 4, CHAINS = 12 };
#endif
// CHAINS independent sums hide the latency of a multiply-add (4 cycles and 4 units need 16 of them, 5 cycles and 2
// units need 10) and still fit the registers together with the two operands.

typedef float vec __attribute__((vector_size(LANES * sizeof(float))));

#if defined(__clang__)
#define STRAIGHT _Pragma("clang loop unroll(full)")
#else
#define STRAIGHT _Pragma("GCC unroll 32")
#endif

enum { STEPS = 20000, STREAM_FLOATS = 2 << 20 };
static const double ARITHMETIC_S = 0.12, STREAM_S = 0.03;

static volatile float hidden_factor = 0.75f, hidden_term = 0.25f, sink;

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// Seconds for STEPS x CHAINS x LANES multiply-adds.
static double arithmetic_window(void) {
    const vec factor = hidden_factor - (vec){0}, term = hidden_term - (vec){0};
    vec sum[CHAINS];
    STRAIGHT
    for (int i = 0; i < CHAINS; i++) sum[i] = term * (float)i;
    const double start = now_s();
    for (int step = 0; step < STEPS; step++) {
        STRAIGHT
        for (int i = 0; i < CHAINS; i++) sum[i] = sum[i] * factor + term;
    }
    // The clock is read after the sums are known, not when the processor gets round to it.
    vec all = {0};
    STRAIGHT
    for (int i = 0; i < CHAINS; i++) all += sum[i];
    sink = all[0];
    return now_s() - start;
}

// Seconds to read two arrays and write a third.
static double stream_window(float *restrict to, const float *restrict a, const float *restrict b) {
    const float factor = hidden_factor;
    const double start = now_s();
    for (size_t i = 0; i < STREAM_FLOATS; i++) to[i] = a[i] + factor * b[i];
    sink = to[STREAM_FLOATS / 2];
    return now_s() - start;
}

int main(void) {
    double best = 1e9;
    for (double start = now_s(); now_s() - start < ARITHMETIC_S;) {
        const double window = arithmetic_window();
        if (window < best) best = window;
    }
    printf("METRIC peak_gflops=%.2f\n", 2.0 * STEPS * CHAINS * LANES / best * 1e-9);

    float *arrays = malloc(3 * STREAM_FLOATS * sizeof *arrays);
    if (arrays == NULL) return 1;
    for (size_t i = 0; i < 3 * (size_t)STREAM_FLOATS; i++) arrays[i] = 1.0f;
    best = 1e9;
    for (double start = now_s(); now_s() - start < STREAM_S;) {
        const double window = stream_window(arrays, arrays + STREAM_FLOATS, arrays + 2 * (size_t)STREAM_FLOATS);
        if (window < best) best = window;
    }
    printf("METRIC peak_gbs=%.2f\n", 3.0 * STREAM_FLOATS * sizeof *arrays / best * 1e-9);
    free(arrays);
    return 0;
}
