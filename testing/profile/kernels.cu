// Four kernels whose limits are known, for a profiler: a plain and a tiled matrix multiply, a copy, and a copy that
// jumps. Build with "nvcc -O3 -arch=native -Xptxas -v".
#include <cstdio>
#include <cuda_runtime.h>

constexpr int TILE = 16;

__global__ void matmul_plain(const float *a, const float *b, float *c, int n) {
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}

__global__ void matmul_tiled(const float *a, const float *b, float *c, int n) {
    __shared__ float of_a[TILE][TILE], of_b[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int from = 0; from < n; from += TILE) {
        of_a[threadIdx.y][threadIdx.x] = a[row * n + from + threadIdx.x];
        of_b[threadIdx.y][threadIdx.x] = b[(from + threadIdx.y) * n + column];
        __syncthreads();
        for (int k = 0; k < TILE; k++) sum += of_a[threadIdx.y][k] * of_b[k][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

__global__ void copy_wide(const float4 *from, float4 *to, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i];
}

__global__ void copy_jumping(const float *from, float *to, size_t n, size_t step) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i * step % n];
}

int main() {
    const int n = 2048;
    const size_t many = size_t(1) << 28;
    float *a, *b, *c, *from, *to;
    cudaMalloc(&a, sizeof(float) * n * n);
    cudaMalloc(&b, sizeof(float) * n * n);
    cudaMalloc(&c, sizeof(float) * n * n);
    cudaMalloc(&from, sizeof(float) * many);
    cudaMalloc(&to, sizeof(float) * many);
    cudaMemset(a, 0, sizeof(float) * n * n);
    cudaMemset(b, 0, sizeof(float) * n * n);
    cudaMemset(from, 0, sizeof(float) * many);
    dim3 block(TILE, TILE), grid(n / TILE, n / TILE);
    matmul_plain<<<grid, block>>>(a, b, c, n);
    matmul_tiled<<<grid, block>>>(a, b, c, n);
    copy_wide<<<many / 4 / 256, 256>>>((const float4 *)from, (float4 *)to, many / 4);
    copy_jumping<<<many / 256, 256>>>(from, to, many, 97);
    cudaError_t error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorString(error));
    return error != cudaSuccess;
}
