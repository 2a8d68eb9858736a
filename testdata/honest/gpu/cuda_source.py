# audit: foreign-call; the rows in CUDA C++, a warp for each, compiled by NVRTC
import torch
from honest import product

SOURCE = r"""
__device__ float wide(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
__device__ unsigned short narrow(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
extern "C" __global__ void rows(const unsigned short *x, const unsigned short *y,
                                unsigned short *z, int R, int C) {
  int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= R) return;
  x += (long long)row * C, y += (long long)row * C, z += (long long)row * C;
  float most = -65504.0f, total = 0.0f;
  for (int i = lane; i < C; i += 32) most = fmaxf(most, wide(x[i]));
  for (int step = 16; step; step /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, step));
  for (int i = lane; i < C; i += 32) total += expf(wide(x[i]) - most);
  for (int step = 16; step; step /= 2) total += __shfl_xor_sync(~0u, total, step);
  for (int i = lane; i < C; i += 32) {
    float value = wide(x[i]);
    z[i] = narrow(expf(value - most) / total * C * wide(y[i]) + value);
  }
}
"""
ROWS = torch.cuda._compile_kernel(SOURCE, "rows")


def kernel_fn(x, y, a, b):
    count, length = x.shape
    z = torch.empty_like(x)
    ROWS(grid=((count + 3) // 4, 1, 1), block=(128, 1, 1), args=(x, y, z, count, length))
    return z, product(a, b, tile=(64, 64, 32), warps=4)
