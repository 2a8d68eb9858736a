// A convolution of every channel with a window of 3 by 3 of its own, in bfloat16 with float32 sums.
//
// A thread takes four neighboring columns and goes down its rows. Each row is read once and used for
// three rows of outputs, whose sums are in registers. All rows are requested at the start.

#include <cuda_bf16.h>
#include <stdint.h>

// Rows of outputs of a block, and blocks of a multiprocessor.
// karve: knob ROWS in 6,10,15,17
#define ROWS 10
// karve: knob BLOCKS in 3,4,5,6
#define BLOCKS 4
// Whether results bypass the cache.
// karve: knob STREAM in 0,1
#define STREAM 0

#define THREADS 128
#define WIDTH (THREADS * 4)

template <class T> __device__ void write_out(T *to, T v) {
  if (STREAM)
    __stcs(to, v);
  else
    *to = v;
}

__device__ float low(uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ float high(uint32_t pair) { return __uint_as_float(pair & 0xffff0000u); }
__device__ uint32_t pair_of(float a, float b) {
  __nv_bfloat162 both = __floats2bfloat162_rn(a, b);
  return *(uint32_t *)&both;
}

__global__ void __launch_bounds__(THREADS, BLOCKS)
    depthwise(int height, int channels, const uint2 *__restrict__ x,
              const __nv_bfloat16 *__restrict__ w, uint32_t *__restrict__ y) {
  int t = threadIdx.x, plane = blockIdx.y, top = blockIdx.x * ROWS;
  constexpr int OUT = WIDTH / 2 - 1;
  float k[9];
#pragma unroll
  for (int i = 0; i < 9; i++) k[i] = __bfloat162float(w[plane % channels * 9 + i]);
  const uint2 *from = x + ((size_t)plane * height + top) * THREADS + t;
  uint32_t *to = y + ((size_t)plane * (height - 2) + top) * OUT + 2 * t;
  bool last = t == THREADS - 1;
  uint2 own[ROWS + 2];
  // The first two elements of the next thread.
  uint32_t right[ROWS + 2];
#pragma unroll
  for (int row = 0; row < ROWS + 2; row++) {
    own[row] = __ldg(from + row * THREADS);
    right[row] = last ? 0 : __ldg((const uint32_t *)(from + row * THREADS + 1));
  }
  // Sums of the three output rows that the current row is part of.
  float done[4], next[4] = {}, later[4] = {};
#pragma unroll
  for (int row = 0; row < ROWS + 2; row++) {
    float v[6] = {low(own[row].x),  high(own[row].x), low(own[row].y),
                  high(own[row].y), low(right[row]),  high(right[row])};
#pragma unroll
    for (int i = 0; i < 4; i++) {
      done[i] = fmaf(v[i], k[6], fmaf(v[i + 1], k[7], fmaf(v[i + 2], k[8], next[i])));
      next[i] = fmaf(v[i], k[3], fmaf(v[i + 1], k[4], fmaf(v[i + 2], k[5], later[i])));
      later[i] = fmaf(v[i], k[0], fmaf(v[i + 1], k[1], v[i + 2] * k[2]));
    }
    if (row >= 2) {
      uint32_t *out = to + (row - 2) * OUT;
      write_out(out, pair_of(done[0], done[1]));
      if (!last) write_out(out + 1, pair_of(done[2], done[3]));
    }
  }
}

// Takes device pointers, and a stream for the work. Only for rows of 512 elements, in a number that
// leaves a multiple of ROWS.
extern "C" int depthwise_conv2d(int images, int channels, int height, int width, const uint2 *x,
                                const __nv_bfloat16 *w, uint32_t *y, cudaStream_t stream) {
  if (width != WIDTH || (height - 2) % ROWS != 0) return cudaErrorInvalidValue;
  dim3 blocks((height - 2) / ROWS, images * channels);
  depthwise<<<blocks, THREADS, 0, stream>>>(height, channels, x, w, y);
  return cudaGetLastError();
}
