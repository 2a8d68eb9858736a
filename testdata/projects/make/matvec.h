#ifndef MATVEC_H
#define MATVEC_H

#include <stddef.h>

/* y = A x, with A of rows x cols stored by rows. */
void matvec(const double *a, const double *x, double *y, size_t rows, size_t cols);

void fill(double *values, size_t n, unsigned seed);

#endif
