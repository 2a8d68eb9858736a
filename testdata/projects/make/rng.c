#include "matvec.h"

void fill(double *values, size_t n, unsigned seed)
{
    unsigned state = seed * 747796405u + 2891336453u;
    size_t i;

    for (i = 0; i < n; i++) {
        state = state * 1103515245u + 12345u;
        values[i] = (double)(state >> 9) / 8388608.0 - 0.5;
    }
}
