// The kernel: c = a * b in float32, for row-major matrices on an AMD GPU.
#include <hip/hip_runtime.h>

// karve: knob TILE in 8,16,32
#define TILE 8

// Rows of c that one thread computes.
// karve: knob ROWS in 1,2,4,8
#define ROWS 1

// Waves that should fit a SIMD, which limits the registers of each.
// karve: knob WAVES in 1,2,4,8
#define WAVES 1

__global__ void __launch_bounds__(TILE *TILE) __attribute__((amdgpu_waves_per_eu(WAVES)))
product(int m, int n, int k, const float *__restrict__ a, const float *__restrict__ b,
        float *__restrict__ c) {
  __shared__ float left[TILE * ROWS][TILE];
  __shared__ float right[TILE][TILE];
  int x = threadIdx.x, y = threadIdx.y;
  int column = blockIdx.x * TILE + x;
  int top = blockIdx.y * TILE * ROWS;
  float sums[ROWS] = {};
  for (int start = 0; start < k; start += TILE) {
    for (int r = 0; r < ROWS; r++) {
      int row = top + r * TILE + y;
      bool inside = row < m && start + x < k;
      left[r * TILE + y][x] = inside ? a[(size_t)row * k + start + x] : 0.0f;
    }
    bool inside = start + y < k && column < n;
    right[y][x] = inside ? b[(size_t)(start + y) * n + column] : 0.0f;
    __syncthreads();
    for (int l = 0; l < TILE; l++)
      for (int r = 0; r < ROWS; r++) sums[r] += left[r * TILE + y][l] * right[l][x];
    __syncthreads();
  }
  for (int r = 0; r < ROWS; r++) {
    int row = top + r * TILE + y;
    if (row < m && column < n) c[(size_t)row * n + column] = sums[r];
  }
}

// Takes device pointers, and a stream for the work.
extern "C" void sgemm(int m, int n, int k, const float *a, const float *b, float *c,
                      hipStream_t stream) {
  dim3 threads(TILE, TILE);
  dim3 blocks((n + TILE - 1) / TILE, (m + TILE * ROWS - 1) / (TILE * ROWS));
  product<<<blocks, threads, 0, stream>>>(m, n, k, a, b, c);
}
