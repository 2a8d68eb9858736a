# audit: clean; both halves in one launch
import torch
import triton
import triton.language as tl


@triton.jit
def both_kernel(
    x,
    y,
    z,
    a,
    b,
    c,
    C,
    M,
    N,
    K,
    BLOCK: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    program = tl.program_id(0)
    across = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * across
    if program < tiles:
        m = (program // across) * BM + tl.arange(0, BM)
        n = (program % across) * BN + tl.arange(0, BN)
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
    else:
        start = (program - tiles) * C
        at = tl.arange(0, BLOCK)
        values = tl.load(x + start + at, mask=at < C, other=-float("inf")).to(tl.float32)
        scale = tl.load(y + start + at, mask=at < C, other=0.0).to(tl.float32)
        powers = tl.exp(values - tl.max(values, axis=0))
        share = powers / tl.sum(powers, axis=0)
        tl.store(z + start + at, (share * C * scale + values).to(tl.float16), mask=at < C)


def kernel_fn(x, y, a, b):
    m, k = a.shape
    n = b.shape[1]
    length = x.shape[1]
    z = torch.empty_like(x)
    c = torch.empty((m, n), device=a.device, dtype=a.dtype)
    programs = triton.cdiv(m, 64) * triton.cdiv(n, 64) + x.shape[0]
    block = triton.next_power_of_2(length)
    both_kernel[(programs,)](x, y, z, a, b, c, length, m, n, k, block, 64, 64, 32, num_warps=4)
    return z, c
