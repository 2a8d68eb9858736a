// Spreads volumes to the odd places of larger ones, with zeros everywhere else. A thread writes eight
// neighbors at once, whatever row or plane they are in, and mostly eight zeros; it does so several
// times, since blocks with little work take longer to start than to run.

#include <stdint.h>

#define TIMES 8
#define DEPTH 16u
#define HEIGHT 32u
#define WIDTH 32u
#define PLANES (2 * DEPTH + 1)
#define ROWS (2 * HEIGHT + 1)
#define COLUMNS (2 * WIDTH + 1)

__device__ uint4 eight(uint32_t first, const uint16_t *__restrict__ from) {
  // Counted over all volumes.
  uint32_t row = first / COLUMNS, w = first - row * COLUMNS;
  uint32_t v[8] = {};
  // The elements may end in the next row.
#pragma unroll
  for (int turn = 0; turn < 2; turn++) {
    uint32_t plane = row / ROWS, h = row - plane * ROWS;
    uint32_t volume = plane / PLANES, d = plane - volume * PLANES;
    if (h & d & 1) {
      const uint16_t *at = from + ((volume * DEPTH + d / 2) * HEIGHT + h / 2) * WIDTH;
#pragma unroll
      for (int i = 0; i < 8; i++) {
        uint32_t here = turn ? w + i - COLUMNS : w + i;
        if (here < COLUMNS && (here & 1)) v[i] = __ldg(at + here / 2);
      }
    }
    row++;
    if (w + 8 <= COLUMNS) break;
  }
  return make_uint4(v[0] | v[1] << 16, v[2] | v[3] << 16, v[4] | v[5] << 16, v[6] | v[7] << 16);
}

__global__ void __launch_bounds__(256)
    spread_out(uint32_t total, const uint16_t *__restrict__ from, uint4 *__restrict__ to) {
  uint32_t first = blockIdx.x * 256u * TIMES + threadIdx.x;
#pragma unroll
  for (int turn = 0; turn < TIMES; turn++) {
    uint32_t at = first + turn * 256;
    if (at < total) to[at] = eight(at * 8, from);
  }
}

// Takes device pointers, and a stream for the work. Only for volumes of 16 by 32 by 32, so many that
// the result has a multiple of eight elements.
extern "C" int spread(int volumes, int depth, int height, int width, const uint16_t *from, uint4 *to,
                      cudaStream_t stream) {
  size_t total = (size_t)volumes * PLANES * ROWS * COLUMNS;
  if (depth != DEPTH || height != HEIGHT || width != WIDTH) return cudaErrorInvalidValue;
  if (total % 8 != 0 || total >> 31 != 0) return cudaErrorInvalidValue;
  uint32_t vectors = (uint32_t)(total / 8), each = 256 * TIMES;
  spread_out<<<(vectors + each - 1) / each, 256, 0, stream>>>(vectors, from, to);
  return cudaGetLastError();
}
