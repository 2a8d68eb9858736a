#include <stddef.h>

// The sum of x[i] * y[i] for i < n, in any order of summation.
float dot(const float *x, const float *y, size_t n);
