// What a GPU can do at most: multiply-adds in fp32, matrix products in fp16, and bytes copied.
// karve compiles this with nvcc and runs it. Prints "name NAME", then "KIND RATE" for each run.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <mma.h>

static const int CHAINS = 16, STEPS = 4096, THREADS = 256, BLOCKS_OF_UNIT = 8, TILES = 4;

#define MUST(call)                                                                               \
    do {                                                                                         \
        cudaError_t error = (call);                                                              \
        if (error != cudaSuccess) {                                                              \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));                       \
            exit(1);                                                                             \
        }                                                                                        \
    } while (0)

__global__ void multiply_adds(float factor, float term, float *out) {
    float sum[CHAINS];
#pragma unroll
    for (int i = 0; i < CHAINS; i++) sum[i] = term * (float)(threadIdx.x + i);
    for (int step = 0; step < STEPS; step++) {
#pragma unroll
        for (int i = 0; i < CHAINS; i++) sum[i] = fmaf(sum[i], factor, term);
    }
    float all = 0;
#pragma unroll
    for (int i = 0; i < CHAINS; i++) all += sum[i];
    // Never true, but the compiler cannot know.
    if (all == 12345.678f) out[threadIdx.x] = all;
}

// Elements that differ and are not known before: of equal ones the compiler would compute one.
__global__ void products(float factor, float *out) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, half, row_major> a;
    fragment<matrix_b, 16, 16, 16, half, col_major> b;
    fragment<accumulator, 16, 16, 16, float> sum[TILES];
    for (int e = 0; e < a.num_elements; e++) a.x[e] = __float2half(factor * (float)(threadIdx.x + e));
    for (int e = 0; e < b.num_elements; e++) b.x[e] = __float2half(factor - (float)(e * threadIdx.x));
#pragma unroll
    for (int i = 0; i < TILES; i++) {
        for (int e = 0; e < sum[i].num_elements; e++) sum[i].x[e] = factor * (float)(8 * i + e);
    }
    for (int step = 0; step < STEPS; step++) {
#pragma unroll
        for (int i = 0; i < TILES; i++) mma_sync(sum[i], a, b, sum[i]);
    }
    float all = 0;
#pragma unroll
    for (int i = 0; i < TILES; i++) {
        // All of them: of what nobody reads the compiler would leave out the work.
        for (int e = 0; e < sum[i].num_elements; e++) all += sum[i].x[e];
    }
    if (all == 12345.678f) out[threadIdx.x] = all;
}

__global__ void copy(const float4 *__restrict__ from, float4 *__restrict__ to, size_t n) {
    const size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) to[i] = from[i];
}

int main(int argc, char **argv) {
    const int runs = argc > 1 ? atoi(argv[1]) : 20;
    cudaDeviceProp found;
    MUST(cudaGetDeviceProperties(&found, 0));
    printf("name %s\n", found.name);
    const int blocks = found.multiProcessorCount * BLOCKS_OF_UNIT;
    size_t free_bytes, all_bytes, half_bytes = (size_t)1 << 30;
    MUST(cudaMemGetInfo(&free_bytes, &all_bytes));
    while (half_bytes * 3 > free_bytes && half_bytes > 1 << 20) half_bytes /= 2;
    float4 *from, *to;
    MUST(cudaMalloc(&from, half_bytes));
    MUST(cudaMalloc(&to, half_bytes));
    MUST(cudaMemset(from, 1, half_bytes));
    cudaEvent_t start, end;
    MUST(cudaEventCreate(&start));
    MUST(cudaEventCreate(&end));
    const char *const names[] = {"fp32", "fp16", "copy"};
    const double fp32 = 2.0 * CHAINS * STEPS * THREADS * blocks;
    const double fp16 = 2.0 * 4096 * TILES * STEPS * (THREADS / 32) * blocks;
    const double amounts[] = {fp32, fp16, 2.0 * (double)half_bytes};
    for (int kind = 0; kind < 3; kind++) {
        // The first two runs warm up.
        for (int run = -2; run < runs; run++) {
            MUST(cudaEventRecord(start));
            if (kind == 0) multiply_adds<<<blocks, THREADS>>>(0.75f, 0.25f, (float *)to);
            else if (kind == 1) products<<<blocks, THREADS>>>(1e-3f, (float *)to);
            else copy<<<blocks, THREADS>>>(from, to, half_bytes / sizeof(float4));
            MUST(cudaGetLastError());
            MUST(cudaEventRecord(end));
            MUST(cudaEventSynchronize(end));
            float ms = 0;
            MUST(cudaEventElapsedTime(&ms, start, end));
            if (run >= 0 && ms > 0) printf("%s %.6e\n", names[kind], amounts[kind] / (ms * 1e-3));
        }
    }
    return 0;
}
