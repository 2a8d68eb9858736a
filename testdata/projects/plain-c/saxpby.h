#ifndef SAXPBY_H
#define SAXPBY_H

/* y = a x + b y */
void saxpby(int n, float a, const float *x, float b, float *y);

#endif
