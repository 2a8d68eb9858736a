# audit: clean; the terms of a sum in four parts, which a second kernel adds in order
import torch
import triton
import triton.language as tl
from honest import rows

PARTS = 4


@triton.jit
def part_kernel(
    a, b, sums_of, M, N, K, TERMS, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    part = tl.program_id(2)
    end = tl.minimum(K, (part + 1) * TERMS)
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(part * TERMS, end, BK):
        k = start + tl.arange(0, BK)
        left_inside = (m[:, None] < M) & (k[None, :] < end)
        right_inside = (k[:, None] < end) & (n[None, :] < N)
        left = tl.load(a + m[:, None] * K + k[None, :], mask=left_inside, other=0.0)
        right = tl.load(b + k[:, None] * N + n[None, :], mask=right_inside, other=0.0)
        sums = tl.dot(left, right, sums)
    inside = (m[:, None] < M) & (n[None, :] < N)
    tl.store(sums_of + part * M * N + m[:, None] * N + n[None, :], sums, mask=inside)


@triton.jit
def add_kernel(sums_of, c, COUNT, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < COUNT
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in range(PARTS):
        total += tl.load(sums_of + part * COUNT + at, mask=inside, other=0.0)
    tl.store(c + at, total.to(tl.float16), mask=inside)


def kernel_fn(x, y, a, b):
    m, k = a.shape
    n = b.shape[1]
    c = torch.empty((m, n), device=a.device, dtype=a.dtype)
    sums = torch.empty((PARTS, m, n), device=a.device, dtype=torch.float32)
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64), PARTS)
    part_kernel[grid](a, b, sums, m, n, k, triton.cdiv(k, PARTS), 64, 64, 32, num_warps=4)
    add_kernel[(triton.cdiv(m * n, 512),)](sums, c, m * n, PARTS, 512)
    return rows(x, y), c
