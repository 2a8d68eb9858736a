# audit: clean
"""y = 2 x in the CuTe DSL: each thread keeps WIDTH elements in registers."""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import make_ptr

THREADS = 128
WIDTH = 4


@cute.kernel
def scale(x: cute.Tensor, y: cute.Tensor):
    thread, block = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
    own = cute.make_rmem_tensor(cute.make_layout(WIDTH), cutlass.Float32)
    start = (block * THREADS + thread) * WIDTH
    for i in cutlass.range_constexpr(WIDTH):
        own[i] = cutlass.Float32(0.0)
        if start + i < x.shape[0]:
            own[i] = x[start + i] + x[start + i]
    for i in cutlass.range_constexpr(WIDTH):
        if start + i < x.shape[0]:
            y[start + i] = own[i]


@cute.jit
def launch(x: cute.Pointer, y: cute.Pointer, n: cutlass.Int32, stream: cuda.CUstream):
    layout = cute.make_layout(n)
    blocks = cute.ceil_div(n, THREADS * WIDTH)
    scale(cute.make_tensor(x, layout), cute.make_tensor(y, layout)).launch(
        grid=(blocks, 1, 1), block=(THREADS, 1, 1), stream=stream
    )


def pointer(address):
    return make_ptr(cutlass.Float32, address, cute.AddressSpace.gmem, assumed_align=16)


COMPILED = cute.compile(launch, pointer(16), pointer(16), cutlass.Int32(0), cuda.CUstream(0))


def kernel_fn(x):
    y = torch.empty_like(x)
    stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
    COMPILED(pointer(x.data_ptr()), pointer(y.data_ptr()), x.numel(), stream)
    return y
