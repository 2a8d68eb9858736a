# audit: clean; as many programs as there are processors, each with many tiles
import torch
import triton
import triton.language as tl
from honest import rows


@triton.jit
def tiles_kernel(
    a, b, c, M, N, K, PROGRAMS, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    across = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * across, PROGRAMS):
        m = (tile // across) * BM + tl.arange(0, BM)
        n = (tile % across) * BN + tl.arange(0, BN)
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
    processors = torch.cuda.get_device_properties(a.device).multi_processor_count
    tiles = triton.cdiv(m, 64) * triton.cdiv(n, 64)
    programs = min(processors, tiles)
    tiles_kernel[(programs,)](a, b, c, m, n, k, programs, 64, 64, 32, num_warps=4)
    return rows(x, y), c
