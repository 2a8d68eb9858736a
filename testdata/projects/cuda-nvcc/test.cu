#include <cstdio>
#include <vector>

#include "transpose.cuh"

int main() {
    const int rows = 131, cols = 257;
    std::vector<float> in(rows * cols), out(rows * cols);
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i % 1013);
    float *d_in, *d_out;
    cudaMalloc(&d_in, in.size() * sizeof(float));
    cudaMalloc(&d_out, out.size() * sizeof(float));
    cudaMemcpy(d_in, in.data(), in.size() * sizeof(float), cudaMemcpyHostToDevice);
    transpose(d_in, d_out, rows, cols);
    if (cudaMemcpy(out.data(), d_out, out.size() * sizeof(float), cudaMemcpyDeviceToHost) !=
        cudaSuccess) {
        std::printf("CUDA error: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
    }
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c)
            if (out[c * rows + r] != in[r * cols + c]) {
                std::printf("wrong at row %d, column %d\n", r, c);
                return 1;
            }
    std::printf("ok\n");
    return 0;
}
