#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "matvec.h"

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void run(size_t n)
{
    double *a = malloc(n * n * sizeof *a);
    double *x = malloc(n * sizeof *x);
    double *y = malloc(n * sizeof *y);
    double best = 1e9, checksum = 0.0;
    int i;

    fill(a, n * n, 3);
    fill(x, n, 4);
    for (i = 0; i < 20; i++) {
        double start = now();
        double took;

        matvec(a, x, y, n, n);
        took = now() - start;
        if (took < best)
            best = took;
    }
    for (i = 0; i < (int)n; i++)
        checksum += y[i];
    printf("matvec %4zux%-4zu  %9.3f us  %6.2f GFLOP/s  (checksum %.9g)\n", n, n, best * 1e6,
           2.0 * n * n / best * 1e-9, checksum);
    free(a);
    free(x);
    free(y);
}

int main(void)
{
    printf("dense matrix-vector product, best of 20\n");
    run(256);
    run(512);
    return 0;
}
