// Running sums of long rows, in float32. A thread block takes one row, in pieces that its registers
// hold: every element is read once and written once, with a piece of the next one on its way.
//
// A thread has several groups of four elements of a piece. Warps add up their groups by shuffles,
// all groups at the same time; then one warp adds up the sums of all warps, and the sum of all
// pieces before.

#include <stdint.h>

// karve: knob WARPS in 4,8,16,32
#define WARPS 16
// karve: knob GROUPS in 2,4,8
#define GROUPS 8
// karve: knob BLOCKS in 1,2,3,4,6,8
#define BLOCKS 1

// Whether results bypass the cache.
// karve: knob STREAM in 0,1
#define STREAM 1

#define ALL 0xffffffffu
#define PIECE (WARPS * 32 * GROUPS * 4)

template <class T> __device__ void write_out(T *to, T v) {
  if (STREAM)
    __stcs(to, v);
  else
    *to = v;
}

__global__ void __launch_bounds__(WARPS * 32, BLOCKS)
    running_sums(int columns, const float *__restrict__ x, float *__restrict__ y) {
  // The sums of the groups of a warp, in the order of the row, and the sum of the last piece.
  __shared__ float sums[2][GROUPS * WARPS + 1];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const float4 *from = (const float4 *)(x + (size_t)blockIdx.x * columns) + threadIdx.x;
  float4 *to = (float4 *)(y + (size_t)blockIdx.x * columns) + threadIdx.x;
  float4 next[GROUPS];
#pragma unroll
  for (int g = 0; g < GROUPS; g++) next[g] = __ldcs(from + g * WARPS * 32);
  float before = 0.0f;
  for (int start = 0, turn = 0; start < columns; start += PIECE, turn ^= 1) {
    float4 v[GROUPS];
    float last[GROUPS];
#pragma unroll
    for (int g = 0; g < GROUPS; g++) v[g] = next[g];
    from += PIECE / 4;
    if (start + PIECE < columns) {
#pragma unroll
      for (int g = 0; g < GROUPS; g++) next[g] = __ldcs(from + g * WARPS * 32);
    }
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
      v[g].y += v[g].x;
      v[g].z += v[g].y;
      v[g].w += v[g].z;
      last[g] = v[g].w;
    }
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
#pragma unroll
      for (int g = 0; g < GROUPS; g++) {
        float other = __shfl_up_sync(ALL, last[g], d);
        if (lane >= d) last[g] += other;
      }
    }
    if (lane == 31) {
#pragma unroll
      for (int g = 0; g < GROUPS; g++) sums[turn][g * WARPS + warp] = last[g];
    }
    __syncthreads();
    // Every warp does this for itself, which saves another barrier.
    constexpr int EACH = (GROUPS * WARPS + 31) / 32;
    float part[EACH], sum = 0.0f;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      int at = lane * EACH + i;
      float one = at < GROUPS * WARPS ? sums[turn][at] : 0.0f;
      part[i] = sum;
      sum += one;
    }
    float reached = sum;
    for (int d = 1; d < 32; d *= 2) {
      float other = __shfl_up_sync(ALL, reached, d);
      if (lane >= d) reached += other;
    }
    // Not by a difference, since an infinity must not reach back.
    float earlier = __shfl_up_sync(ALL, reached, 1);
    float offset = before + (lane > 0 ? earlier : 0.0f);
    before += __shfl_sync(ALL, reached, 31);
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
      int at = g * WARPS + warp;
      // The lane that has this sum, and its place there.
      float mine = 0.0f;
#pragma unroll
      for (int i = 0; i < EACH; i++) {
        float one = __shfl_sync(ALL, offset + part[i], at / EACH);
        if (at % EACH == i) mine = one;
      }
      float left = __shfl_up_sync(ALL, last[g], 1);
      float add = mine + (lane > 0 ? left : 0.0f);
      write_out(to + g * WARPS * 32, make_float4(v[g].x + add, v[g].y + add, v[g].z + add, v[g].w + add));
    }
    to += PIECE / 4;
  }
}

// Takes device pointers, and a stream for the work. Only for rows that a piece divides.
extern "C" int cumsum(int rows, int columns, const float *x, float *y, cudaStream_t stream) {
  running_sums<<<rows, WARPS * 32, 0, stream>>>(columns, x, y);
  return cudaGetLastError();
}
