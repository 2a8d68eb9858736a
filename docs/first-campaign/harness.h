// Shared by the test and the benchmark: the case, the inputs and the exact result.
#include "dot.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// A random number in [-1, 1) (splitmix64).
static float draw(uint64_t *seed)
{
    uint64_t z = (*seed += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (float)((int64_t)(z ^ (z >> 31)) >> 40) / 8388608.0f;
}

// Parses "n=4096" and a seed; allocates and fills two arrays.
static size_t inputs(int argc, char **argv, float **x, float **y)
{
    size_t n = 0;
    if (argc != 3 || sscanf(argv[1], "n=%zu", &n) != 1 || n == 0) {
        fprintf(stderr, "usage: %s n=LENGTH SEED\n", argv[0]);
        exit(2);
    }
    uint64_t seed = strtoull(argv[2], NULL, 10);
    *x = malloc(n * sizeof **x);
    *y = malloc(n * sizeof **y);
    if (!*x || !*y) {
        fprintf(stderr, "out of memory\n");
        exit(2);
    }
    for (size_t i = 0; i < n; i++) {
        (*x)[i] = draw(&seed);
        (*y)[i] = draw(&seed);
    }
    return n;
}

// Whether a result is within the error of single precision for any order of summation.
static int is_right(float result, const float *x, const float *y, size_t n)
{
    double exact = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        exact += (double)x[i] * y[i];
        size += fabs((double)x[i] * y[i]);
    }
    return fabs(result - exact) <= 1e-7 * sqrt((double)n) * size + 1e-30;
}
