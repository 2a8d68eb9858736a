// The largest of 27 elements of a volume in bfloat16: a window of 3, stride 2, padding 1 and
// dilation 3 in each direction.
//
// An output at o reads 2o - 1, 2o + 2 and 2o + 5. A warp takes a few rows of outputs and goes
// through the planes of its volume. Of each plane it reads the rows that it needs as whole lines,
// and takes maxima over rows and planes for pairs of elements at once; neighbors in a row are taken
// last, once for each output, by shuffles. So every element is read once, but for some rows that two
// warps of a block need, which the cache has.

#include <cuda_bf16.h>
#include <stdint.h>

// karve: knob WARPS in 4,8,16
#define WARPS 4
// Rows of outputs of a warp.
// karve: knob ROWS in 2,4
#define ROWS 2
// Parts of a volume, plane by plane.
// karve: knob PARTS in 1,2,4
#define PARTS 2

#define SIZE 128
#define OUT 62
#define ALL 0xffffffffu
#define LOWEST 0xff80ff80u // two negative infinities

__device__ uint32_t larger(uint32_t a, uint32_t b) {
  __nv_bfloat162 c = __hmax2_nan(*(__nv_bfloat162 *)&a, *(__nv_bfloat162 *)&b);
  return *(uint32_t *)&c;
}

// Four neighbors in a row.
struct Four {
  uint32_t low, high;
};

__device__ Four larger(Four a, Four b) { return {larger(a.low, b.low), larger(a.high, b.high)}; }

// The largest of the three rows that each output row reads of one plane.
__device__ void read_plane(const uint2 *plane, int top, int lane, Four (&best)[ROWS]) {
  // Rows 2o - 1, 2o + 2 and 2o + 5 of ROWS outputs in a row: all from the first to the last but a few.
  Four odd[ROWS + 3], even[ROWS];
#pragma unroll
  for (int i = 0; i < ROWS + 3; i++) {
    int h = 2 * (top + i) - 1;
    uint2 v = h >= 0 && h < SIZE ? __ldg(plane + h * (SIZE / 4) + lane) : make_uint2(LOWEST, LOWEST);
    odd[i] = {v.x, v.y};
  }
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
    int h = 2 * (top + i) + 2;
    uint2 v = h < SIZE ? __ldg(plane + h * (SIZE / 4) + lane) : make_uint2(LOWEST, LOWEST);
    even[i] = {v.x, v.y};
  }
#pragma unroll
  for (int i = 0; i < ROWS; i++) best[i] = larger(larger(odd[i], odd[i + 3]), even[i]);
}

__global__ void __launch_bounds__(WARPS * 32)
    max_pool(const uint2 *__restrict__ x, __nv_bfloat16 *__restrict__ y) {
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int top = (blockIdx.x * WARPS + warp) * ROWS;
  if (top >= OUT) return;
  constexpr int EACH = (OUT + PARTS - 1) / PARTS;
  int first = blockIdx.y * EACH, end = min(first + EACH, OUT);
  const uint2 *volume = x + (size_t)blockIdx.z * SIZE * SIZE * (SIZE / 4);
  uint32_t *to = (uint32_t *)(y + (size_t)blockIdx.z * OUT * OUT * OUT);
  // Odd planes 2o - 1, 2o + 1, 2o + 3 and 2o + 5 of an output at o.
  Four odd[4][ROWS];
  auto read_odd = [&](int o, Four(&best)[ROWS]) {
    int plane = 2 * o - 1;
    if (plane < 0) {
#pragma unroll
      for (int i = 0; i < ROWS; i++) best[i] = {LOWEST, LOWEST};
    } else {
      read_plane(volume + (size_t)plane * SIZE * (SIZE / 4), top, lane, best);
    }
  };
#pragma unroll
  for (int i = 0; i < 3; i++) read_odd(first + i, odd[i]);
  for (int start = first; start < end; start += 4) {
#pragma unroll
    for (int turn = 0; turn < 4; turn++) {
      int o = start + turn;
      if (o >= end) break;
      Four even[ROWS];
      read_odd(o + 3, odd[(turn + 3) % 4]);
      read_plane(volume + (size_t)(2 * o + 2) * SIZE * (SIZE / 4), top, lane, even);
#pragma unroll
      for (int i = 0; i < ROWS; i++) {
        Four v = larger(larger(odd[turn % 4][i], odd[(turn + 3) % 4][i]), even[i]);
        // Outputs 2l and 2l + 1 of lane l, from pairs 2l - 1 to 2l + 3: pair p has 2p and 2p + 1.
        uint32_t before = __shfl_up_sync(ALL, v.high, 1);
        uint32_t next = __shfl_down_sync(ALL, v.low, 1), later = __shfl_down_sync(ALL, v.high, 1);
        if (lane == 0) before = LOWEST;
        // The odd elements of pairs 2l - 1 and 2l; the even ones of 2l + 1 and 2l + 2; the odd ones
        // of 2l + 2 and 2l + 3.
        uint32_t best = larger(larger(__byte_perm(before, v.low, 0x7632),
                                      __byte_perm(v.high, next, 0x5410)),
                               __byte_perm(next, later, 0x7632));
        int row = top + i;
        if (row < OUT && lane < OUT / 2) to[((size_t)o * OUT + row) * (OUT / 2) + lane] = best;
      }
    }
  }
}

// Takes device pointers, and a stream for the work. Only for volumes of 128 by 128 by 128.
extern "C" int maxpool3d(int volumes, const uint2 *x, __nv_bfloat16 *y, cudaStream_t stream) {
  dim3 blocks((OUT + WARPS * ROWS - 1) / (WARPS * ROWS), PARTS, volumes);
  max_pool<<<blocks, WARPS * 32, 0, stream>>>(x, y);
  return cudaGetLastError();
}
