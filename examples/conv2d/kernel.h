// out[y][x] = the sum over i, j < F of filter[i][j] * in[y + i][x + j], in single precision.
// Row-major and dense: out is H x W, filter is F x F, in is (H + F - 1) x (W + F - 1); H, W, F >= 1.
// They do not overlap, are aligned for float and nothing more, and hold finite values. out is only written.
#ifndef KERNEL_H
#define KERNEL_H

void conv2d(int H, int W, int F, const float *in, const float *filter, float *out);

#endif
