"""A kernel in CuTe DSL that gpu-entries.py compiles before its calls or in each of them."""

import cutlass.cute as cute


@cute.kernel
def add_kernel(x: cute.Tensor, y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    y[b * 256 + t] = x[b * 256 + t] + 1.0


@cute.jit
def add(x: cute.Tensor, y: cute.Tensor):
    add_kernel(x, y).launch(grid=(16, 1, 1), block=(256, 1, 1))
