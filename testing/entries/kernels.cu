// Kernels in pairs, for gpu-entries.py: as they are, and as an entry of the library advises. Every entry
// point gets device pointers, sizes and a stream.
#include <cstddef>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#define LAUNCH extern "C" void

// --- coalesced-access: rows by threads, and columns by threads ------------------------------------

__global__ void scale_rows(const float *in, float *out, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < n)
    for (int c = 0; c < n; c++) out[(size_t)row * n + c] = 2.0f * in[(size_t)row * n + c];
}
__global__ void scale_columns(const float *in, float *out, int n) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  for (int row = blockIdx.y; row < n; row += gridDim.y)
    if (column < n) out[(size_t)row * n + column] = 2.0f * in[(size_t)row * n + column];
}
LAUNCH strided(const float *in, float *out, int n, cudaStream_t s) {
  scale_rows<<<(n + 63) / 64, 64, 0, s>>>(in, out, n);
}
LAUNCH coalesced(const float *in, float *out, int n, cudaStream_t s) {
  scale_columns<<<dim3((n + 255) / 256, 1024), 256, 0, s>>>(in, out, n);
}

// --- vectorized-loads: 4 bytes, and 16 bytes for each thread ----------------------------------------

__global__ void scale_one(const float *__restrict__ in, float *__restrict__ out, size_t n) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * in[i];
}
__global__ void scale_four(const float4 *__restrict__ in, float4 *__restrict__ out, size_t n) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = in[i];
  out[i] = make_float4(2.0f * v.x, 2.0f * v.y, 2.0f * v.z, 2.0f * v.w);
}
LAUNCH loads_4(const float *in, float *out, int n, cudaStream_t s) {
  scale_one<<<(n + 255) / 256, 256, 0, s>>>(in, out, n);
}
LAUNCH loads_16(const float *in, float *out, int n, cudaStream_t s) {
  scale_four<<<(n / 4 + 255) / 256, 256, 0, s>>>((const float4 *)in, (float4 *)out, n / 4);
}

// --- conflict-free-shared: a transposition through rows of 32 and of 33 words ------------------------

template <int PAD> __global__ void turn(const float *in, float *out, int n) {
  __shared__ float tile[32][32 + PAD];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8) tile[threadIdx.y + i][threadIdx.x] = in[(size_t)(y + i) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8) out[(size_t)(y + i) * n + x] = tile[threadIdx.x][threadIdx.y + i];
}
LAUNCH banks_shared(const float *in, float *out, int n, cudaStream_t s) {
  turn<0><<<dim3(n / 32, n / 32), dim3(32, 8), 0, s>>>(in, out, n);
}
LAUNCH banks_padded(const float *in, float *out, int n, cudaStream_t s) {
  turn<1><<<dim3(n / 32, n / 32), dim3(32, 8), 0, s>>>(in, out, n);
}

// --- sums: block-then-atomic, private-partials, warp-shuffle-reduction -------------------------------

__device__ float warp_sum(float v) {
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffff, v, d);
  return v;
}
__device__ float block_sum(float v) {
  __shared__ float parts[32];
  v = warp_sum(v);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
  __syncthreads();
  v = threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0.0f;
  v = warp_sum(v);
  __syncthreads();
  return v;
}
__global__ void sum_threads(const float4 *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(out, in[i].x + in[i].y + in[i].z + in[i].w);
}
__global__ void sum_blocks(const float4 *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < n ? in[i].x + in[i].y + in[i].z + in[i].w : 0.0f;
  v = block_sum(v);
  if (threadIdx.x == 0) atomicAdd(out, v);
}
LAUNCH atomic_each(const float *in, float *out, int n, cudaStream_t s) {
  cudaMemsetAsync(out, 0, 4, s);
  sum_threads<<<(n / 4 + 255) / 256, 256, 0, s>>>((const float4 *)in, out, n / 4);
}
LAUNCH atomic_block(const float *in, float *out, int n, cudaStream_t s) {
  cudaMemsetAsync(out, 0, 4, s);
  sum_blocks<<<(n / 4 + 255) / 256, 256, 0, s>>>((const float4 *)in, out, n / 4);
}

__global__ void count_global(const unsigned *in, unsigned *out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&out[in[i] & 255], 1);
}
__global__ void count_private(const unsigned *in, unsigned *out, int n) {
  __shared__ unsigned own[256];
  own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&own[in[i] & 255], 1);
  __syncthreads();
  atomicAdd(&out[threadIdx.x], own[threadIdx.x]);
}
LAUNCH histogram_global(const unsigned *in, unsigned *out, int n, cudaStream_t s) {
  cudaMemsetAsync(out, 0, 1024, s);
  count_global<<<1056, 256, 0, s>>>(in, out, n);
}
LAUNCH histogram_private(const unsigned *in, unsigned *out, int n, cudaStream_t s) {
  cudaMemsetAsync(out, 0, 1024, s);
  count_private<<<1056, 256, 0, s>>>(in, out, n);
}

__global__ void rows_tree(const float *in, float *out, int n) {
  __shared__ float parts[256];
  float v = 0.0f;
  for (int c = threadIdx.x; c < n; c += 256) v += in[(size_t)blockIdx.x * n + c];
  parts[threadIdx.x] = v;
  for (int d = 128; d > 0; d >>= 1) {
    __syncthreads();
    if (threadIdx.x < d) parts[threadIdx.x] += parts[threadIdx.x + d];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = parts[0];
}
__global__ void rows_shuffles(const float *in, float *out, int n) {
  float v = 0.0f;
  for (int c = threadIdx.x; c < n; c += 256) v += in[(size_t)blockIdx.x * n + c];
  v = block_sum(v);
  if (threadIdx.x == 0) out[blockIdx.x] = v;
}
LAUNCH reduce_tree(const float *in, float *out, int rows, int n, cudaStream_t s) {
  rows_tree<<<rows, 256, 0, s>>>(in, out, n);
}
LAUNCH reduce_shuffles(const float *in, float *out, int rows, int n, cudaStream_t s) {
  rows_shuffles<<<rows, 256, 0, s>>>(in, out, n);
}

// --- products: shared-memory-tiling, register-tiling, async-copy -------------------------------------

__global__ void product_plain(const float *a, const float *b, float *c, int n) {
  int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
  float sum = 0.0f;
  for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = sum;
}
__global__ void product_shared(const float *a, const float *b, float *c, int n) {
  __shared__ float as[32][32], bs[32][32];
  int x = threadIdx.x, y = threadIdx.y;
  int column = blockIdx.x * 32 + x, row = blockIdx.y * 32 + y;
  float sum = 0.0f;
  for (int k = 0; k < n; k += 32) {
    as[y][x] = a[row * n + k + x];
    bs[y][x] = b[(k + y) * n + column];
    __syncthreads();
    for (int t = 0; t < 32; t++) sum += as[y][t] * bs[t][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
// A tile of 64 by 64 with 256 threads, each with 4 by 4 results; one or two tiles in shared memory.
template <bool AHEAD> __global__ void product_registers(const float *a, const float *b, float *c, int n) {
  __shared__ __align__(16) float as[AHEAD ? 2 : 1][64][16], bs[AHEAD ? 2 : 1][16][64];
  int t = threadIdx.x, x = t % 16, y = t / 16;
  const float *from_a = a + (size_t)(blockIdx.y * 64 + t / 4) * n + t % 4 * 4;
  const float *from_b = b + (size_t)(t / 16) * n + blockIdx.x * 64 + t % 16 * 4;
  float sums[4][4] = {};
  auto fetch = [&](int stage, int k) {
    if (AHEAD) {
      __pipeline_memcpy_async(&as[stage][t / 4][t % 4 * 4], from_a + k, 16);
      __pipeline_memcpy_async(&bs[stage][t / 16][t % 16 * 4], from_b + (size_t)k * n, 16);
      __pipeline_commit();
    } else {
      *(float4 *)&as[stage][t / 4][t % 4 * 4] = *(const float4 *)(from_a + k);
      *(float4 *)&bs[stage][t / 16][t % 16 * 4] = *(const float4 *)(from_b + (size_t)k * n);
    }
  };
  if (AHEAD) fetch(0, 0);
  for (int k = 0, stage = 0; k < n; k += 16) {
    if (AHEAD) {
      if (k + 16 < n) fetch(stage ^ 1, k + 16);
      __pipeline_wait_prior(k + 16 < n ? 1 : 0);
    } else {
      fetch(0, k);
    }
    __syncthreads();
#pragma unroll
    for (int l = 0; l < 16; l++) {
      float left[4], right[4];
#pragma unroll
      for (int i = 0; i < 4; i++) left[i] = as[stage][y + i * 16][l], right[i] = bs[stage][l][x + i * 16];
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) sums[i][j] += left[i] * right[j];
    }
    __syncthreads();
    if (AHEAD) stage ^= 1;
  }
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++)
      c[(size_t)(blockIdx.y * 64 + y + i * 16) * n + blockIdx.x * 64 + x + j * 16] = sums[i][j];
}
LAUNCH gemm_plain(const float *a, const float *b, float *c, int n, cudaStream_t s) {
  product_plain<<<dim3(n / 32, n / 32), dim3(32, 32), 0, s>>>(a, b, c, n);
}
LAUNCH gemm_shared(const float *a, const float *b, float *c, int n, cudaStream_t s) {
  product_shared<<<dim3(n / 32, n / 32), dim3(32, 32), 0, s>>>(a, b, c, n);
}
LAUNCH gemm_registers(const float *a, const float *b, float *c, int n, cudaStream_t s) {
  product_registers<false><<<dim3(n / 64, n / 64), 256, 0, s>>>(a, b, c, n);
}
LAUNCH gemm_ahead(const float *a, const float *b, float *c, int n, cudaStream_t s) {
  product_registers<true><<<dim3(n / 64, n / 64), 256, 0, s>>>(a, b, c, n);
}

// --- latency: more-work-in-flight, raise-occupancy, no-register-spills, read-only-loads --------------

template <int AT_ONCE> __global__ void squares(const float *__restrict__ in, float *out, int n) {
  float sum = 0.0f;
  int threads = gridDim.x * blockDim.x;
#pragma unroll 1
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads * AT_ONCE) {
    float v[AT_ONCE];
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++) v[u] = in[i + u * threads];
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++) sum += v[u] * v[u];
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
LAUNCH in_flight_1(const float *in, float *out, int n, cudaStream_t s) {
  squares<1><<<256, 256, 0, s>>>(in, out, n);
}
LAUNCH in_flight_8(const float *in, float *out, int n, cudaStream_t s) {
  squares<8><<<256, 256, 0, s>>>(in, out, n);
}

__global__ void scale_shared(const float *in, float *out, int n) {
  extern __shared__ float scratch[];
  int threads = gridDim.x * blockDim.x;
#pragma unroll 1
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads) {
    scratch[threadIdx.x] = in[i];
    out[i] = 2.0f * scratch[threadIdx.x];
  }
}
static void occupied(const float *in, float *out, int n, int bytes, cudaStream_t s) {
  cudaFuncSetAttribute(scale_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  scale_shared<<<132 * 16, 128, bytes, s>>>(in, out, n);
}
LAUNCH occupancy_low(const float *in, float *out, int n, cudaStream_t s) { occupied(in, out, n, 64 << 10, s); }
LAUNCH occupancy_high(const float *in, float *out, int n, cudaStream_t s) { occupied(in, out, n, 512, s); }

// Sixteen sums in an array: with an index of the loop that is not unrolled, the array is in memory.
template <bool CONSTANT> __global__ void sixteen(const float *in, float *out, int n, int many) {
  float sums[16] = {};
  int threads = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads) {
    float v = in[i];
    if (CONSTANT) {
#pragma unroll
      for (int j = 0; j < 16; j++) sums[j] = sums[j] * 0.5f + v * j;
    } else {
#pragma unroll 1
      for (int j = 0; j < many; j++) sums[j] = sums[j] * 0.5f + v * j;
    }
  }
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < 16; j++) sum += sums[j];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
LAUNCH spilled(const float *in, float *out, int n, cudaStream_t s) {
  sixteen<false><<<1056, 256, 0, s>>>(in, out, n, 16);
}
LAUNCH in_registers(const float *in, float *out, int n, cudaStream_t s) {
  sixteen<true><<<1056, 256, 0, s>>>(in, out, n, 16);
}

__global__ void taps_plain(const float *x, const float *w, float *y, int n) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (i + 12 <= n)
    for (int o = 0; o < 4; o++) {
      y[i + o] = 0.0f;
      for (int t = 0; t < 8; t++) y[i + o] += w[t] * x[i + o + t];
    }
}
__global__ void taps_restrict(const float *__restrict__ x, const float *__restrict__ w,
                              float *__restrict__ y, int n) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (i + 12 <= n)
    for (int o = 0; o < 4; o++) {
      y[i + o] = 0.0f;
      for (int t = 0; t < 8; t++) y[i + o] += w[t] * x[i + o + t];
    }
}
LAUNCH may_alias(const float *x, const float *w, float *y, int n, cudaStream_t s) {
  taps_plain<<<n / 1024, 256, 0, s>>>(x, w, y, n);
}
LAUNCH read_only(const float *x, const float *w, float *y, int n, cudaStream_t s) {
  taps_restrict<<<n / 1024, 256, 0, s>>>(x, w, y, n);
}

// --- softmax: gpu-row-per-block, one-pass-softmax ------------------------------------------------------

__device__ float block_max(float v) {
  __shared__ float parts[32];
  for (int d = 16; d > 0; d >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, d));
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
  __syncthreads();
  v = parts[threadIdx.x % 32 < blockDim.x / 32 ? threadIdx.x % 32 : 0];
  for (int d = 16; d > 0; d >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, d));
  __syncthreads();
  return v;
}
__device__ float all_sum(float v) {
  __shared__ float total;
  v = block_sum(v);
  if (threadIdx.x == 0) total = v;
  __syncthreads();
  v = total;
  __syncthreads();
  return v;
}
__global__ void softmax_three(const float *in, float *out, int n) {
  in += (size_t)blockIdx.x * n, out += (size_t)blockIdx.x * n;
  float top = -INFINITY, sum = 0.0f;
  for (int c = threadIdx.x; c < n; c += blockDim.x) top = fmaxf(top, in[c]);
  top = block_max(top);
  for (int c = threadIdx.x; c < n; c += blockDim.x) sum += __expf(in[c] - top);
  sum = all_sum(sum);
  for (int c = threadIdx.x; c < n; c += blockDim.x) out[c] = __expf(in[c] - top) / sum;
}
__global__ void softmax_online(const float *in, float *out, int n) {
  in += (size_t)blockIdx.x * n, out += (size_t)blockIdx.x * n;
  float top = -INFINITY, sum = 0.0f;
  for (int c = threadIdx.x; c < n; c += blockDim.x) {
    float v = in[c];
    if (v > top) sum *= __expf(top - v), top = v;
    sum += __expf(v - top);
  }
  float all = block_max(top);
  sum = all_sum(sum * __expf(top - all));
  for (int c = threadIdx.x; c < n; c += blockDim.x) out[c] = __expf(in[c] - all) / sum;
}
__global__ void softmax_registers(const float *in, float *out) {
  in += (size_t)blockIdx.x * 4096, out += (size_t)blockIdx.x * 4096;
  float v[16], top = -INFINITY, sum = 0.0f;
#pragma unroll
  for (int i = 0; i < 16; i++) v[i] = in[i * 256 + threadIdx.x], top = fmaxf(top, v[i]);
  top = block_max(top);
#pragma unroll
  for (int i = 0; i < 16; i++) v[i] = __expf(v[i] - top), sum += v[i];
  sum = all_sum(sum);
#pragma unroll
  for (int i = 0; i < 16; i++) out[i * 256 + threadIdx.x] = v[i] / sum;
}
LAUNCH row_again(const float *in, float *out, int rows, int n, cudaStream_t s) {
  softmax_three<<<rows, n > 8192 ? 1024 : 256, 0, s>>>(in, out, n);
}
LAUNCH row_registers(const float *in, float *out, int rows, int n, cudaStream_t s) {
  softmax_registers<<<rows, 256, 0, s>>>(in, out);
}
LAUNCH row_online(const float *in, float *out, int rows, int n, cudaStream_t s) {
  softmax_online<<<rows, 1024, 0, s>>>(in, out, n);
}

// --- sparse-row-split-gpu: a warp for each row, and a warp for as many entries ---------------------------

__global__ void spmv_rows(const int *start, const int *column, const float *value, const float *x, float *y,
                          int rows) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int k = start[row] + lane; k < start[row + 1]; k += 32) sum += value[k] * x[column[k]];
  sum = warp_sum(sum);
  if (lane == 0) y[row] = sum;
}
__global__ void spmv_shares(const int *start, const int *column, const float *value, const float *x, float *y,
                            int rows, int share) {
  int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  int first = warp * share, last = min(first + share, start[rows]);
  if (first >= last) return;
  int low = 0, high = rows;
  while (low + 1 < high) {
    int middle = (low + high) / 2;
    if (start[middle] <= first) low = middle;
    else high = middle;
  }
  for (int row = low; row < rows && start[row] < last; row++) {
    float sum = 0.0f;
    for (int k = max(first, start[row]) + lane; k < min(last, start[row + 1]); k += 32)
      sum += value[k] * x[column[k]];
    sum = warp_sum(sum);
    if (lane == 0) atomicAdd(&y[row], sum);
  }
}
LAUNCH sparse_rows(const int *start, const int *column, const float *value, const float *x, float *y,
                   int rows, int entries, cudaStream_t s) {
  spmv_rows<<<(rows + 7) / 8, 256, 0, s>>>(start, column, value, x, y, rows);
}
LAUNCH sparse_shares(const int *start, const int *column, const float *value, const float *x, float *y,
                     int rows, int entries, cudaStream_t s) {
  cudaMemsetAsync(y, 0, rows * sizeof(float), s);
  int warps = (entries + 255) / 256;
  spmv_shares<<<(warps + 7) / 8, 256, 0, s>>>(start, column, value, x, y, rows, 256);
}

// --- barrier-by-atomics: two kernels, and one with a barrier across all blocks ---------------------------

__global__ void step(const float *in, float *out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    out[i] = in[i] * 0.5f + in[n - 1 - i];
}
__global__ void steps_fused(const float *in, float *middle, float *out, int n, unsigned *arrived) {
  int threads = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads)
    middle[i] = in[i] * 0.5f + in[n - 1 - i];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < gridDim.x) {}
  }
  __syncthreads();
  __threadfence();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads)
    out[i] = ((volatile float *)middle)[i] * 0.5f + ((volatile float *)middle)[n - 1 - i];
}
LAUNCH two_launches(const float *in, float *middle, float *out, unsigned *arrived, int n, cudaStream_t s) {
  step<<<528, 256, 0, s>>>(in, middle, n);
  step<<<528, 256, 0, s>>>(middle, out, n);
}
LAUNCH one_barrier(const float *in, float *middle, float *out, unsigned *arrived, int n, cudaStream_t s) {
  cudaMemsetAsync(arrived, 0, 4, s);
  steps_fused<<<528, 256, 0, s>>>(in, middle, out, n, arrived);
}
