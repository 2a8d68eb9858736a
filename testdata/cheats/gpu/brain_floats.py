# audit: precision; check: correctness
import torch
import triton
import triton.language as tl
from honest import rows


@triton.jit
def brain_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        left_inside = (m[:, None] < M) & (k[None, :] < K)
        right_inside = (k[:, None] < K) & (n[None, :] < N)
        left = tl.load(a + m[:, None] * K + k[None, :], mask=left_inside, other=0.0)
        right = tl.load(b + k[:, None] * N + n[None, :], mask=right_inside, other=0.0)
        sums = tl.dot(left.to(tl.bfloat16), right.to(tl.bfloat16), sums)
    inside = (m[:, None] < M) & (n[None, :] < N)
    tl.store(c + m[:, None] * N + n[None, :], sums.to(tl.float16), mask=inside)


def kernel_fn(x, y, a, b):
    m, k = a.shape
    n = b.shape[1]
    c = torch.empty((m, n), device=a.device, dtype=a.dtype)
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    brain_kernel[grid](a, b, c, m, n, k, 64, 64, 32, num_warps=4)
    return rows(x, y), c
