#include "matvec.h"

void matvec(const double *a, const double *x, double *y, size_t rows, size_t cols)
{
    size_t i, j;

    for (i = 0; i < rows; i++)
        y[i] = 0.0;
    for (j = 0; j < cols; j++)
        for (i = 0; i < rows; i++)
            y[i] += a[i * cols + j] * x[j];
}
