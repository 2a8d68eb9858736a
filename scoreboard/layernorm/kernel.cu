// The layer norm of a few very long rows, in float32. A row has 16 MB, so all multiprocessors hold
// it in their shared memory together, and every element is read once and written once.
//
// Each warp has its own part of every row. It arrives in shared memory, where its moments are taken,
// and moves on to registers when the row before has left them: the blocks exchange the moments of one
// row while they write the row before and load the next one. Squared differences are from means of few elements; the counts are the same
// everywhere, so merging two parts takes their mean, and the sum of their squares plus that of their
// difference.

#include <stdint.h>

// karve: knob CHUNKS in 2,4,8
#define CHUNKS 4
// Whether results bypass the cache.
// karve: knob STREAM in 0,1
#define STREAM 0
#define WARPS 16
#define BLOCKS 128
// A row has this many groups of four elements for each thread.
#define GROUPS 16
#define PER_CHUNK (GROUPS / CHUNKS)
// As many as fit: 7 * 32 KB.
#define SLOTS (CHUNKS * 7 / 4)
#define COLUMNS ((size_t)BLOCKS * WARPS * 32 * GROUPS * 4)
#define ROWS_MAX 1024

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

// The mean of a number of elements, and the sum of their squared differences from it.
struct Moments {
  float mean, squares;
};

// Merges two parts of this many elements each.
__device__ Moments merge(Moments a, Moments b, float n) {
  float d = b.mean - a.mean;
  return {a.mean + 0.5f * d, a.squares + b.squares + d * d * (0.5f * n)};
}

__device__ Moments merge_lanes(Moments own, float n) {
  for (int d = 1; d < 32; d *= 2, n *= 2) {
    Moments other = {__shfl_xor_sync(ALL, own.mean, d), __shfl_xor_sync(ALL, own.squares, d)};
    own = merge(own, other, n);
  }
  return own;
}

// Those of a lane's elements of a chunk.
__device__ Moments moments_of(const float4 *at) {
  float4 v[PER_CHUNK];
  float sum = 0.0f, squares = 0.0f;
#pragma unroll
  for (int i = 0; i < PER_CHUNK; i++) {
    v[i] = at[i * 32];
    sum += (v[i].x + v[i].y) + (v[i].z + v[i].w);
  }
  float mean = sum / (PER_CHUNK * 4);
#pragma unroll
  for (int i = 0; i < PER_CHUNK; i++) {
    float a = v[i].x - mean, b = v[i].y - mean, c = v[i].z - mean, d = v[i].w - mean;
    squares += (a * a + b * b) + (c * c + d * d);
  }
  return {mean, squares};
}

// What the blocks found, and how many of them did. The last one to leave sets the counts back.
__device__ float2 found[ROWS_MAX][BLOCKS];
__device__ unsigned counts[ROWS_MAX + 1];

__global__ void __launch_bounds__(WARPS * 32, 1)
    layer_norm(int rows, float eps, const float *__restrict__ x, float *__restrict__ y) {
  extern __shared__ __align__(128) float4 held[];
  __shared__ uint64_t arrived[WARPS][SLOTS];
  __shared__ float2 of_warps[2][WARPS];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float4 *mine = held + (size_t)warp * SLOTS * PER_CHUNK * 32;
  // In groups.
  size_t own = ((size_t)blockIdx.x * WARPS + warp) * GROUPS * 32;
  int chunks = rows * CHUNKS;
  auto load = [&](int chunk) {
    size_t from = (size_t)(chunk / CHUNKS) * (COLUMNS / 4) + own + chunk % CHUNKS * PER_CHUNK * 32;
    int slot = chunk % SLOTS;
    start_load(mine + slot * PER_CHUNK * 32, (const float4 *)x + from, PER_CHUNK * 32 * 16,
               &arrived[warp][slot]);
  };
  if (lane == 0) {
    for (int slot = 0; slot < SLOTS; slot++)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_at(&arrived[warp][slot])));
    asm volatile("fence.mbarrier_init.release.cluster;");
    for (int chunk = 0; chunk < SLOTS && chunk < chunks; chunk++) load(chunk);
  }
  __syncwarp();
  // The row before.
  float4 v[GROUPS];
  for (int row = 0; row <= rows; row++) {
    if (row < rows) {
      Moments sums[CHUNKS];
      float n = PER_CHUNK * 4;
#pragma unroll
      for (int c = 0; c < CHUNKS; c++) {
        int chunk = row * CHUNKS + c, slot = chunk % SLOTS;
        wait_for(&arrived[warp][slot], chunk / SLOTS & 1);
        sums[c] = moments_of(mine + slot * PER_CHUNK * 32 + lane);
      }
#pragma unroll
      for (int step = 1; step < CHUNKS; step *= 2, n *= 2) {
#pragma unroll
        for (int c = 0; c < CHUNKS; c += 2 * step) sums[c] = merge(sums[c], sums[c + step], n);
      }
      Moments all = merge_lanes(sums[0], n);
      if (lane == 0) of_warps[row & 1][warp] = make_float2(all.mean, all.squares);
      __syncthreads();
      if (warp == 0) {
        // Lanes beyond the warps have the same values again, and stay among themselves.
        float2 one = of_warps[row & 1][lane % WARPS];
        all = {one.x, one.y};
        n *= 32;
        for (int d = 1; d < WARPS; d *= 2, n *= 2) {
          Moments other = {__shfl_xor_sync(ALL, all.mean, d), __shfl_xor_sync(ALL, all.squares, d)};
          all = merge(all, other, n);
        }
        if (lane == 0) {
          __stcg(&found[row][blockIdx.x], make_float2(all.mean, all.squares));
          __threadfence();
          atomicAdd(&counts[row], 1);
        }
      }
    }
    if (row > 0) {
      if (threadIdx.x == 0) {
        unsigned seen;
        do {
          asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                       : "=r"(seen)
                       : "l"(&counts[row - 1])
                       : "memory");
        } while (seen < BLOCKS);
      }
      __syncthreads();
      Moments some[BLOCKS / 32];
#pragma unroll
      for (int i = 0; i < BLOCKS / 32; i++) {
        float2 one = __ldcg(&found[row - 1][i * 32 + lane]);
        some[i] = {one.x, one.y};
      }
      float n = (float)(COLUMNS / BLOCKS);
      Moments all = merge(merge(some[0], some[1], n), merge(some[2], some[3], n), 2 * n);
      all = merge_lanes(all, 4 * n);
      float factor = rsqrtf(all.squares / (float)COLUMNS + eps), shift = -all.mean * factor;
      float4 *to = (float4 *)y + (size_t)(row - 1) * (COLUMNS / 4) + own + lane;
#pragma unroll
      for (int i = 0; i < GROUPS; i++)
        write_out(to + i * 32, make_float4(fmaf(v[i].x, factor, shift), fmaf(v[i].y, factor, shift),
                                           fmaf(v[i].z, factor, shift), fmaf(v[i].w, factor, shift)));
    }
    if (row < rows) {
#pragma unroll
      for (int c = 0; c < CHUNKS; c++) {
        int chunk = row * CHUNKS + c, slot = chunk % SLOTS;
        const float4 *at = mine + slot * PER_CHUNK * 32 + lane;
#pragma unroll
        for (int i = 0; i < PER_CHUNK; i++) v[c * PER_CHUNK + i] = at[i * 32];
        __syncwarp();
        if (lane == 0 && chunk + SLOTS < chunks) {
          asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
          load(chunk + SLOTS);
        }
      }
    }
  }
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(&counts[ROWS_MAX], 1) == BLOCKS - 1) {
    for (int row = 0; row < rows; row++) counts[row] = 0;
    counts[ROWS_MAX] = 0;
  }
}

// Takes device pointers, and a stream for the work. All blocks run at the same time. Only for rows
// that have as many elements as all registers hold.
extern "C" int layernorm(int rows, int columns, float eps, const float *x, float *y,
                         cudaStream_t stream) {
  if (columns != COLUMNS || rows > ROWS_MAX) return cudaErrorInvalidValue;
  static bool ready = false;
  int bytes = WARPS * SLOTS * PER_CHUNK * 32 * 16;
  if (!ready) {
    cudaFuncSetAttribute(layer_norm, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    ready = true;
  }
  void *args[] = {&rows, &eps, &x, &y};
  return cudaLaunchCooperativeKernel((const void *)layer_norm, dim3(BLOCKS), dim3(WARPS * 32), args,
                                     bytes, stream);
}
