// Divides long rows by their Euclidean norms, in float32. A row has 256 KB, so a cluster of thread
// blocks holds it in the registers of several multiprocessors: every element is read once and
// written once.
//
// Each warp has its own part of the row. It arrives in shared memory by one bulk copy and moves on
// to registers; then the part of the next row is loaded, while the warps of the cluster exchange
// their sums and write their results. Rows need not start at a multiple of 16 bytes, but bulk copies
// do, and whole lines of 128 bytes are best: the first line and the last four elements of a row may
// be shared with the rows before and after it.

#include <cooperative_groups.h>
#include <stdint.h>

namespace cg = cooperative_groups;

// karve: knob CLUSTER in 2,4,8
#define CLUSTER 2
// karve: knob BLOCKS in 1,2,3,4
#define BLOCKS 1
// Whether results bypass the cache.
// karve: knob STREAM in 0,1
#define STREAM 0
#define PARTS 32
#define WARPS (PARTS / CLUSTER)
// Groups of four elements of each lane. The last warp has those that are left, one for a lane.
#define GROUPS 16

#define ALL 0xffffffffu

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

// A row, in groups of four elements, from a multiple of 128 bytes on.
struct Row {
  size_t start; // of its first line, in groups
  int lead;     // elements before the row in that
  int groups;
  __device__ Row(int row, int columns) {
    size_t begin = (size_t)row * columns;
    lead = (int)(begin & 31);
    start = (begin - lead) / 4;
    groups = (lead + columns + 3) / 4;
  }
  // Whether an element of a group belongs to the row.
  __device__ bool has(int group, int element, int columns) const {
    int at = group * 4 + element - lead;
    return at >= 0 && at < columns;
  }
  // Whether all elements of a group do.
  __device__ bool has_all(int group, int columns) const {
    return has(group, 0, columns) && has(group, 3, columns);
  }
  // A group without the elements of other rows.
  __device__ float4 masked(float4 v, int group, int columns) const {
    return make_float4(has(group, 0, columns) ? v.x : 0.0f, has(group, 1, columns) ? v.y : 0.0f,
                       has(group, 2, columns) ? v.z : 0.0f, has(group, 3, columns) ? v.w : 0.0f);
  }
};

__device__ float squares_of(float4 v) { return (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w); }

__global__ void __launch_bounds__(WARPS * 32, BLOCKS)
    norm_rows(int rows, int columns, const float *__restrict__ x, float *__restrict__ y) {
  extern __shared__ __align__(128) float4 held[];
  __shared__ uint64_t arrived[WARPS];
  // Sums of all warps of the cluster, for this row and the next one.
  __shared__ float parts[2][PARTS];
  cg::cluster_group cluster = cg::this_cluster();
  int rank = cluster.block_rank(), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int own = rank * WARPS + warp;
  float4 *mine = held + warp * GROUPS * 32;
  const float4 *from = (const float4 *)x + own * GROUPS * 32;
  int row = blockIdx.x / CLUSTER, step = gridDim.x / CLUSTER;
  if (lane == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_at(&arrived[warp])));
    asm volatile("fence.mbarrier_init.release.cluster;");
    if (row < rows) start_load(mine, from + Row(row, columns).start, GROUPS * 512, &arrived[warp]);
  }
  // No block writes to another one before that has begun.
  __syncwarp();
  cluster.sync();
  for (uint32_t phase = 0; row < rows; row += step, phase ^= 1) {
    Row of(row, columns);
    float4 v[GROUPS], rest = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    int first = own * GROUPS * 32 + lane, left = PARTS * GROUPS * 32 + lane;
    bool has_rest = own == PARTS - 1 && left < of.groups;
    if (has_rest) rest = of.masked(__ldg((const float4 *)x + of.start + left), left, columns);
    wait_for(&arrived[warp], phase);
#pragma unroll
    for (int i = 0; i < GROUPS; i++) v[i] = mine[i * 32 + lane];
    __syncwarp();
    if (lane == 0 && row + step < rows) {
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      start_load(mine, from + Row(row + step, columns).start, GROUPS * 512, &arrived[warp]);
    }
    if (first < 8) v[0] = of.masked(v[0], first, columns);
    int end = first + (GROUPS - 1) * 32;
    if (end == of.groups - 1) v[GROUPS - 1] = of.masked(v[GROUPS - 1], end, columns);
    float sums[4] = {squares_of(rest), 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int i = 0; i < GROUPS; i++) sums[i % 4] += squares_of(v[i]);
    float sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(ALL, sum, d);
    if (lane < CLUSTER) *cluster.map_shared_rank(&parts[phase][own], lane) = sum;
    __syncwarp();
    cluster.sync();
    float all = parts[phase][lane];
    for (int d = 16; d > 0; d /= 2) all += __shfl_xor_sync(ALL, all, d);
    float factor = 1.0f / sqrtf(all);
    float4 *to = (float4 *)y + of.start;
    auto write = [&](float4 v, int group) {
      v = make_float4(v.x * factor, v.y * factor, v.z * factor, v.w * factor);
      if (of.has_all(group, columns)) {
        write_out(to + group, v);
        return;
      }
      float *out = (float *)(to + group);
      if (of.has(group, 0, columns)) out[0] = v.x;
      if (of.has(group, 1, columns)) out[1] = v.y;
      if (of.has(group, 2, columns)) out[2] = v.z;
      if (of.has(group, 3, columns)) out[3] = v.w;
    };
#pragma unroll
    for (int i = 0; i < GROUPS; i++) write(v[i], first + i * 32);
    if (has_rest) write(rest, left);
  }
}

// Takes device pointers, and a stream for the work. Only for tensors of a multiple of four elements
// with rows of 65535 to 65629 of them.
extern "C" int l2norm(int rows, int columns, const float *x, float *y, cudaStream_t stream) {
  if (columns < PARTS * GROUPS * 128 - 1 || columns > PARTS * GROUPS * 128 + 93 ||
      (size_t)rows * columns % 4 != 0)
    return cudaErrorInvalidValue;
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
    cudaFuncSetAttribute(norm_rows, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         (int)launch.dynamicSmemBytes);
    cudaOccupancyMaxActiveClusters(&clusters, norm_rows, &launch);
  }
  launch.gridDim = dim3(CLUSTER * (unsigned)(clusters < rows ? clusters : rows));
  cudaLaunchKernelEx(&launch, norm_rows, rows, columns, x, y);
  return cudaGetLastError();
}
