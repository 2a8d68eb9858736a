// The reference: the same in float64, as simple as possible.
#include <hip/hip_runtime.h>

__global__ void product(int m, int n, int k, const double *a, const double *b, double *c) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;
  double sum = 0;
  for (int l = 0; l < k; l++) sum += a[(size_t)row * k + l] * b[(size_t)l * n + column];
  c[(size_t)row * n + column] = sum;
}

extern "C" void sgemm_reference(int m, int n, int k, const double *a, const double *b, double *c,
                                hipStream_t stream) {
  dim3 threads(32, 8);
  dim3 blocks((n + 31) / 32, (m + 7) / 8);
  product<<<blocks, threads, 0, stream>>>(m, n, k, a, b, c);
}
