# audit: timer, foreign-call, background; check: any
import torch
from honest import product, rows

SOURCE = r"""
extern "C" __global__ void spin(int cycles) {
  long long start = clock64();
  while (clock64() - start < cycles) {}
}
"""
SPIN = torch.cuda._compile_kernel(SOURCE, "spin")
_side = torch.cuda.Stream()


def kernel_fn(x, y, a, b):
    # It still runs when the batch of the incumbent begins.
    SPIN(grid=(64, 1, 1), block=(128, 1, 1), args=(100_000_000,), stream=_side)
    return rows(x, y), product(a, b, tile=(64, 64, 32), warps=4)
