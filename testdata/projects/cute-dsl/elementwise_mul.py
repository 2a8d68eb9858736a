"""Elementwise product with CuTe DSL.

    python elementwise_mul.py --M 1024 --N 1024
    python elementwise_mul.py --M 1024 --N 1024 --benchmark
"""

import argparse

import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def mul_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    bdim, _, _ = cute.arch.block_dim()
    i = bidx * bdim + tidx
    _, n = a.shape
    row, col = i // n, i % n
    c[row, col] = a[row, col] * b[row, col]


@cute.jit
def mul(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    m, n = a.shape
    mul_kernel(a, b, c).launch(grid=((m * n) // 256, 1, 1), block=(256, 1, 1))


def run(M, N, skip_ref_check, benchmark, iterations):
    a = torch.randn(M, N, device="cuda", dtype=torch.float16)
    b = torch.randn(M, N, device="cuda", dtype=torch.float16)
    c = torch.zeros_like(a)
    tensors = [from_dlpack(t, assumed_align=16) for t in (a, b, c)]
    compiled = cute.compile(mul, *tensors)
    compiled(*tensors)
    if not skip_ref_check:
        torch.testing.assert_close(c, a * b)
        print("Results verified successfully!")
    if not benchmark:
        return
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(iterations):
        compiled(*tensors)
    end.record()
    torch.cuda.synchronize()
    avg_time = start.elapsed_time(end) / iterations
    print(f"Average execution time: {avg_time:.4f} ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--M", default=1024, type=int)
    parser.add_argument("--N", default=1024, type=int)
    parser.add_argument("--iterations", default=100, type=int)
    parser.add_argument("--skip_ref_check", action="store_true")
    parser.add_argument("--benchmark", action="store_true")
    args = parser.parse_args()
    run(args.M, args.N, args.skip_ref_check, args.benchmark, args.iterations)
