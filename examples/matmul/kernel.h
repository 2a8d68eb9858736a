// C = A * B in single precision. Row-major and dense: A is M x K, B is K x N, C is M x N; M, N, K >= 1.
// A, B and C do not overlap, are aligned for float and nothing more, and hold finite values. C is only written.
#ifndef KERNEL_H
#define KERNEL_H

void matmul(int M, int N, int K, const float *A, const float *B, float *C);

#endif
