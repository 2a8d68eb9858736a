// The softmax of long rows, in float32. A row has 1.5 MB, so a cluster of thread blocks holds it in
// the shared memory of several multiprocessors: every element is read once and written once.
//
// Each warp has its own part of the row, which arrives by two bulk copies. The first half moves on to
// registers, so that the first half of the next row can be loaded at once; the second half stays in
// shared memory until its results are written. Warps of a cluster only wait for each other to
// exchange maxima and sums.

#include <cooperative_groups.h>
#include <stdint.h>

namespace cg = cooperative_groups;

#define CLUSTER 8
#define WARPS 16
// Whether results bypass the cache.
// karve: knob STREAM in 0,1
#define STREAM 0
// Groups of four elements of each lane, and those of them that are in registers.
#define GROUPS 24
// karve: knob KEPT in 8,10,12,14
#define KEPT 14

#define ALL 0xffffffffu
#define PARTS (CLUSTER * WARPS)
#define COLUMNS (PARTS * GROUPS * 128)

template <class T> __device__ void write_out(T *to, T v) {
  if (STREAM)
    __stcs(to, v);
  else
    *to = v;
}

__device__ uint32_t shared_at(const void *at) { return (uint32_t)__cvta_generic_to_shared(at); }

__device__ void start_load(float4 *to, const float4 *from, uint32_t bytes, uint64_t *arrived) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_at(arrived)),
               "r"(bytes)
               : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_at(to)),
      "l"(from), "r"(bytes), "r"(shared_at(arrived))
      : "memory");
}

__device__ void wait_for(uint64_t *arrived, uint32_t phase) {
  asm volatile(
      "{\n.reg .pred done;\nAGAIN:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra AGAIN;\n}" ::"r"(
          shared_at(arrived)),
      "r"(phase)
      : "memory");
}

__device__ float largest(float4 v) { return fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)); }
__device__ float total(float4 v) { return (v.x + v.y) + (v.z + v.w); }
__device__ float4 powers(float4 v, float base) {
  return make_float4(__expf(v.x - base), __expf(v.y - base), __expf(v.z - base), __expf(v.w - base));
}
__device__ float4 scaled(float4 v, float by) {
  return make_float4(v.x * by, v.y * by, v.z * by, v.w * by);
}

__global__ void __launch_bounds__(WARPS * 32, 1)
    softmax_rows(int rows, const float4 *__restrict__ x, float4 *__restrict__ y) {
  extern __shared__ __align__(128) float4 held[];
  __shared__ uint64_t arrived[WARPS][2];
  // Maxima and sums of all warps of the cluster, for this row and the next one.
  __shared__ float2 parts[2][PARTS];
  cg::cluster_group cluster = cg::this_cluster();
  int rank = cluster.block_rank(), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int own = rank * WARPS + warp;
  float4 *mine = held + warp * GROUPS * 32, *rest = mine + KEPT * 32;
  int row = blockIdx.x / CLUSTER, step = gridDim.x / CLUSTER;
  auto load_first = [&](int row) {
    const float4 *from = x + (size_t)row * (COLUMNS / 4) + own * GROUPS * 32;
    start_load(mine, from, KEPT * 512, &arrived[warp][0]);
  };
  auto load_rest = [&](int row) {
    const float4 *from = x + (size_t)row * (COLUMNS / 4) + own * GROUPS * 32 + KEPT * 32;
    start_load(rest, from, (GROUPS - KEPT) * 512, &arrived[warp][1]);
  };
  if (lane == 0) {
    for (int i = 0; i < 2; i++)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_at(&arrived[warp][i])));
    asm volatile("fence.mbarrier_init.release.cluster;");
    if (row < rows) {
      load_first(row);
      load_rest(row);
    }
  }
  // No block writes to another one before that has begun.
  __syncwarp();
  cluster.sync();
  for (uint32_t phase = 0; row < rows; row += step, phase ^= 1) {
    float4 v[KEPT];
    wait_for(&arrived[warp][0], phase);
#pragma unroll
    for (int i = 0; i < KEPT; i++) v[i] = mine[i * 32 + lane];
    __syncwarp();
    if (lane == 0 && row + step < rows) {
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      load_first(row + step);
    }
    float top = -INFINITY;
#pragma unroll
    for (int i = 0; i < KEPT; i++) top = fmaxf(top, largest(v[i]));
    wait_for(&arrived[warp][1], phase);
#pragma unroll
    for (int i = 0; i < GROUPS - KEPT; i++) top = fmaxf(top, largest(rest[i * 32 + lane]));
    for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(ALL, top, d));
    float base = top == -INFINITY ? 0.0f : top, sum = 0.0f;
#pragma unroll
    for (int i = 0; i < KEPT; i++) {
      v[i] = powers(v[i], base);
      sum += total(v[i]);
    }
#pragma unroll
    for (int i = 0; i < GROUPS - KEPT; i++) {
      float4 one = powers(rest[i * 32 + lane], base);
      sum += total(one);
      rest[i * 32 + lane] = one;
    }
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(ALL, sum, d);
    if (lane < CLUSTER) *cluster.map_shared_rank(&parts[phase][own], lane) = make_float2(top, sum);
    __syncwarp();
    cluster.sync();
    float all_top = -INFINITY, all_sum = 0.0f;
    float2 some[PARTS / 32];
#pragma unroll
    for (int i = 0; i < PARTS / 32; i++) {
      some[i] = parts[phase][i * 32 + lane];
      all_top = fmaxf(all_top, some[i].x);
    }
    for (int d = 16; d > 0; d /= 2) all_top = fmaxf(all_top, __shfl_xor_sync(ALL, all_top, d));
#pragma unroll
    for (int i = 0; i < PARTS / 32; i++) all_sum += some[i].y * __expf(some[i].x - all_top);
    for (int d = 16; d > 0; d /= 2) all_sum += __shfl_xor_sync(ALL, all_sum, d);
    float factor = __expf(base - all_top) / all_sum;
    float4 *to = y + (size_t)row * (COLUMNS / 4) + own * GROUPS * 32 + lane;
#pragma unroll
    for (int i = 0; i < GROUPS - KEPT; i++)
      write_out(to + (KEPT + i) * 32, scaled(rest[i * 32 + lane], factor));
    __syncwarp();
    if (lane == 0 && row + step < rows) {
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      load_rest(row + step);
    }
#pragma unroll
    for (int i = 0; i < KEPT; i++) write_out(to + i * 32, scaled(v[i], factor));
  }
}

// Takes device pointers, and a stream for the work. Only for rows that have as many elements as the
// shared memory of a cluster.
extern "C" int softmax(int rows, int columns, const float4 *x, float4 *y, cudaStream_t stream) {
  if (columns != COLUMNS) return cudaErrorInvalidValue;
  static int clusters = 0;
  cudaLaunchConfig_t launch = {};
  launch.gridDim = dim3(CLUSTER);
  launch.blockDim = dim3(WARPS * 32);
  launch.dynamicSmemBytes = WARPS * GROUPS * 512;
  launch.stream = stream;
  cudaLaunchAttribute size = {};
  size.id = cudaLaunchAttributeClusterDimension;
  size.val.clusterDim.x = CLUSTER;
  size.val.clusterDim.y = size.val.clusterDim.z = 1;
  launch.attrs = &size;
  launch.numAttrs = 1;
  if (clusters == 0) {
    cudaFuncSetAttribute(softmax_rows, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         (int)launch.dynamicSmemBytes);
    cudaOccupancyMaxActiveClusters(&clusters, softmax_rows, &launch);
  }
  launch.gridDim = dim3(CLUSTER * (unsigned)(clusters < rows ? clusters : rows));
  cudaLaunchKernelEx(&launch, softmax_rows, rows, x, y);
  return cudaGetLastError();
}
