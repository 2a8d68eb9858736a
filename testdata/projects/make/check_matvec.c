#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "matvec.h"

static int check(size_t rows, size_t cols)
{
    double *a = malloc(rows * cols * sizeof *a);
    double *x = malloc(cols * sizeof *x);
    double *y = malloc(rows * sizeof *y);
    int bad = 0;
    size_t i, j;

    fill(a, rows * cols, 1);
    fill(x, cols, 2);
    matvec(a, x, y, rows, cols);
    for (i = 0; i < rows; i++) {
        double sum = 0.0;

        for (j = 0; j < cols; j++)
            sum += a[i * cols + j] * x[j];
        if (fabs(sum - y[i]) > 1e-10) {
            printf("row %zu of %zux%zu: %g instead of %g\n", i, rows, cols, y[i], sum);
            bad = 1;
        }
    }
    free(a);
    free(x);
    free(y);
    return bad;
}

int main(void)
{
    return check(1, 1) | check(17, 33) | check(128, 64);
}
