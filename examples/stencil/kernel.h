// One sweep of a 7-point stencil over a grid of X x Y x Z points, in single precision:
// out = centre * in + side * (the sum of in at the six nearest points), for every point that has all six.
// Point (x, y, z) is element (z * Y + y) * X + x; X, Y, Z >= 1. The points at the surface of out are not touched.
// in and out do not overlap, are aligned for float and nothing more, and hold finite values.
#ifndef KERNEL_H
#define KERNEL_H

void stencil(int X, int Y, int Z, float centre, float side, const float *in, float *out);

#endif
