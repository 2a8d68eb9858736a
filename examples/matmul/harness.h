// What bench.c and test.c share: cases, random numbers, and how far from the exact result a kernel may be.
#ifndef HARNESS_H
#define HARNESS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST_SIZE = 8192 };

typedef struct {
    int M, N, K;
} Case;

// Reads "M=128,N=96,K=64": each key exactly once, in any order. Returns 0 when it is anything else.
static inline int parse_case(const char *text, Case *result) {
    *result = (Case){0, 0, 0};
    for (;;) {
        int *size = *text == 'M' ? &result->M : *text == 'N' ? &result->N : *text == 'K' ? &result->K : NULL;
        if (size == NULL || *size != 0 || text[1] != '=' || text[2] < '1' || text[2] > '9') return 0;
        char *end;
        const long value = strtol(text + 2, &end, 10);
        if (value > LARGEST_SIZE) return 0;
        *size = (int)value;
        if (*end == '\0') return result->M != 0 && result->N != 0 && result->K != 0;
        if (*end != ',') return 0;
        text = end + 1;
    }
}

// The two arguments of both programs; ends the program when they are not a case and a seed.
static inline Case parse_arguments(int count, char **arguments, uint64_t *seed) {
    Case result = {0, 0, 0};
    char *end = NULL;
    if (count == 3) *seed = strtoull(arguments[2], &end, 10);
    if (count != 3 || end == arguments[2] || *end != '\0' || !parse_case(arguments[1], &result)) {
        fprintf(stderr, "usage: %s M=128,N=128,K=128 SEED   (sizes 1 to %d)\n", arguments[0], LARGEST_SIZE);
        exit(2);
    }
    return result;
}

// xorshift64*: small and fast; nothing here needs better.
typedef struct {
    uint64_t state;
} Random;

static inline uint64_t next_random(Random *random) {
    uint64_t x = random->state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    random->state = x;
    return x * UINT64_C(0x2545F4914F6CDD1D);
}

static inline Random seeded(uint64_t seed) {
    // Neighbouring seeds must not give similar streams, and the state must not be zero.
    Random random = {seed * UINT64_C(0x9E3779B97F4A7C15) ^ UINT64_C(0xD1B54A32D192ED03)};
    if (random.state == 0) random.state = 1;
    for (int i = 0; i < 8; i++) next_random(&random);
    return random;
}

static inline size_t random_below(Random *random, size_t limit) {
    return (size_t)((next_random(random) >> 32) * limit >> 32);
}

// From -1 up to 1; bits 32 to 63 of a random number are the better half.
static inline float unit_float(uint32_t bits) { return (float)(int32_t)bits * 0x1p-31f; }

// A sum of K products in single precision, added in any order, fused or not, differs from the exact value by at most
// K u / (1 - K u) times the sum of the products' magnitudes, where u = 2^-24 (the standard bound for inner products).
// So no honest reordering is refused, and products rounded to a 16-bit format are. Holds while nothing underflows.
static inline double largest_error(int K, double sum_of_magnitudes) {
    const double ku = (double)K * 0x1p-24;
    return ku / (1.0 - ku) * sum_of_magnitudes;
}

// False for a result that is not a number, too.
static inline int is_close(float result, double exact, double sum_of_magnitudes, int K) {
    const double difference = (double)result - exact;
    const double limit = largest_error(K, sum_of_magnitudes);
    return difference <= limit && -difference <= limit;
}

#endif
