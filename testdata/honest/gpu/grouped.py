# audit: clean; tiles in groups of rows, so that tiles of b stay in the cache
import torch
import triton
import triton.language as tl
from honest import rows


@triton.jit
def grouped_kernel(
    a, b, c, M, N, K, GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    program = tl.program_id(0)
    tiles_m = tl.cdiv(M, BM)
    each = GROUP * tl.cdiv(N, BN)
    first = (program // each) * GROUP
    height = tl.minimum(tiles_m - first, GROUP)
    m = (first + (program % each) % height) * BM + tl.arange(0, BM)
    n = ((program % each) // height) * BN + tl.arange(0, BN)
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        left_inside = (m[:, None] < M) & (k[None, :] < K)
        right_inside = (k[:, None] < K) & (n[None, :] < N)
        left = tl.load(a + m[:, None] * K + k[None, :], mask=left_inside, other=0.0)
        right = tl.load(b + k[:, None] * N + n[None, :], mask=right_inside, other=0.0)
        sums = tl.dot(left, right, sums)
    inside = (m[:, None] < M) & (n[None, :] < N)
    tl.store(c + m[:, None] * N + n[None, :], sums.to(tl.float16), mask=inside)


def kernel_fn(x, y, a, b):
    m, k = a.shape
    n = b.shape[1]
    c = torch.empty((m, n), device=a.device, dtype=a.dtype)
    tiles = triton.cdiv(m, 64) * triton.cdiv(n, 128)
    grouped_kernel[(tiles,)](a, b, c, m, n, k, 8, 64, 128, 32, num_warps=4, num_stages=3)
    return rows(x, y), c
