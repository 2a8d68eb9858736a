"""Both halves of the operation in Triton, for the plain kernel and for what others leave as it is.

rows(x, y) is softmax(x) of each row, times its length, times y, plus x. product(a, b) is a @ b, in
tiles that are too small to be fast.
"""

import torch
import triton
import triton.language as tl

BLOCK_M = 16
BLOCK_N = 16
BLOCK_K = 32


@triton.jit
def rows_kernel(x, y, z, C, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < C
    start = tl.program_id(0) * C
    values = tl.load(x + start + at, mask=inside, other=-float("inf")).to(tl.float32)
    scale = tl.load(y + start + at, mask=inside, other=0.0).to(tl.float32)
    powers = tl.exp(values - tl.max(values, axis=0))
    share = powers / tl.sum(powers, axis=0)
    tl.store(z + start + at, (share * C * scale + values).to(tl.float16), mask=inside)


@triton.jit
def product_kernel(
    a, b, c, M, N, K, TERMS, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, TERMS, BK):
        at = start + k
        left = tl.load(
            a + m[:, None] * K + at[None, :],
            mask=(m[:, None] < M) & (at[None, :] < TERMS),
            other=0.0,
        )
        right = tl.load(
            b + at[:, None] * N + n[None, :],
            mask=(at[:, None] < TERMS) & (n[None, :] < N),
            other=0.0,
        )
        sums = tl.dot(left, right, sums)
    tl.store(
        c + m[:, None] * N + n[None, :],
        sums.to(tl.float16),
        mask=(m[:, None] < M) & (n[None, :] < N),
    )


def rows_into(z, x, y, warps=4):
    length = x.shape[1]
    block = triton.next_power_of_2(length)
    rows_kernel[(x.shape[0],)](x, y, z, length, block, num_warps=warps)
    return z


def rows(x, y, warps=4):
    return rows_into(torch.empty_like(x), x, y, warps)


def product_into(c, a, b, terms=None, tile=(BLOCK_M, BLOCK_N, BLOCK_K), warps=1, stages=2):
    m, k = a.shape
    n = b.shape[1]
    grid = (triton.cdiv(m, tile[0]), triton.cdiv(n, tile[1]))
    terms = k if terms is None else terms
    product_kernel[grid](a, b, c, m, n, k, terms, *tile, num_warps=warps, num_stages=stages)
    return c


def product(a, b, terms=None, tile=(BLOCK_M, BLOCK_N, BLOCK_K), warps=1, stages=2):
    c = torch.empty((a.shape[0], b.shape[1]), device=a.device, dtype=a.dtype)
    return product_into(c, a, b, terms, tile, warps, stages)
