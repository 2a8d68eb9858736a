#include <cstdio>

#include "transpose.cuh"

static void run(int n) {
    float *in, *out;
    cudaMalloc(&in, sizeof(float) * n * n);
    cudaMalloc(&out, sizeof(float) * n * n);
    cudaEvent_t start, stop;
    cudaEventCreate(&start);
    cudaEventCreate(&stop);
    transpose(in, out, n, n);
    cudaEventRecord(start);
    for (int i = 0; i < 100; ++i) transpose(in, out, n, n);
    cudaEventRecord(stop);
    cudaEventSynchronize(stop);
    float ms = 0;
    cudaEventElapsedTime(&ms, start, stop);
    printf("n = %5d: %8.4f ms, %7.1f GB/s\n", n, ms / 100, 2.0 * sizeof(float) * n * n / (ms / 100) * 1e-6);
    cudaFree(in);
    cudaFree(out);
}

int main() {
    for (int n : {1024, 2048, 4096}) run(n);
    return 0;
}
