#include "transpose.cuh"

constexpr int TILE = 16;

__global__ void transpose_kernel(const float *in, float *out, int rows, int cols) {
    int col = blockIdx.x * TILE + threadIdx.x;
    int row = blockIdx.y * TILE + threadIdx.y;
    if (row < rows && col < cols) {
        out[col * rows + row] = in[row * cols + col];
    }
}

void transpose(const float *in, float *out, int rows, int cols, cudaStream_t stream) {
    dim3 block(TILE, TILE);
    dim3 grid((cols + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
    transpose_kernel<<<grid, block, 0, stream>>>(in, out, rows, cols);
}
