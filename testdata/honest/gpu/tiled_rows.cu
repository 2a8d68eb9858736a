// audit: clean; check: any
// A block of threads for each row, and a product in tiles of shared memory.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

static __device__ float over_block(float value, bool is_sum) {
  __shared__ float parts[8];
  for (int step = 16; step; step /= 2) {
    float other = __shfl_xor_sync(~0u, value, step);
    value = is_sum ? value + other : fmaxf(value, other);
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = parts[0];
  for (int i = 1; i < 8; i++) value = is_sum ? value + parts[i] : fmaxf(value, parts[i]);
  return value;
}

__global__ void tiled_rows(const __half *x, const __half *y, __half *z, int C) {
  size_t row = (size_t)blockIdx.x * C;
  float most = -65504.0f, total = 0.0f;
  for (int i = threadIdx.x; i < C; i += 256) most = fmaxf(most, __half2float(x[row + i]));
  most = over_block(most, false);
  for (int i = threadIdx.x; i < C; i += 256) total += expf(__half2float(x[row + i]) - most);
  total = over_block(total, true);
  for (int i = threadIdx.x; i < C; i += 256) {
    float value = __half2float(x[row + i]);
    float share = expf(value - most) / total;
    z[row + i] = __float2half(share * C * __half2float(y[row + i]) + value);
  }
}

__global__ void tiled_product(const __half *a, const __half *b, __half *c, int M, int N, int K) {
  __shared__ float left[32][33], right[32][33];
  int m = blockIdx.y * 32 + threadIdx.y, n = blockIdx.x * 32 + threadIdx.x;
  float sum = 0.0f;
  for (int start = 0; start < K; start += 32) {
    int k = start + threadIdx.x, l = start + threadIdx.y;
    left[threadIdx.y][threadIdx.x] = m < M && k < K ? __half2float(a[(size_t)m * K + k]) : 0.0f;
    right[threadIdx.y][threadIdx.x] = l < K && n < N ? __half2float(b[(size_t)l * N + n]) : 0.0f;
    __syncthreads();
    for (int i = 0; i < 32; i++) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
    __syncthreads();
  }
  if (m < M && n < N) c[(size_t)m * N + n] = __float2half(sum);
}

extern "C" int zoo(const void *x, const void *y, const void *a, const void *b, void *z, void *c,
                   int R, int C, int M, int N, int K, CUstream_st *stream) {
  tiled_rows<<<R, 256, 0, stream>>>((const __half *)x, (const __half *)y, (__half *)z, C);
  tiled_product<<<dim3((N + 31) / 32, (M + 31) / 32), dim3(32, 32), 0, stream>>>(
      (const __half *)a, (const __half *)b, (__half *)c, M, N, K);
  return 0;
}
