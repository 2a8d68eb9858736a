"""The kernel: c = a @ b in float16, in Triton. karve calls kernel_fn and checks what it returns."""

import torch
import triton
import triton.language as tl

# karve: knob BLOCK_M in 32,64,128
BLOCK_M = 32
# karve: knob BLOCK_N in 32,64,128,256
BLOCK_N = 32
# karve: knob BLOCK_K in 32,64
BLOCK_K = 32
# karve: knob GROUP in 1,4,8
GROUP = 1
# karve: knob WARPS in 4,8
WARPS = 4
# karve: knob STAGES in 2,3,4
STAGES = 2


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, G: tl.constexpr):
    program = tl.program_id(0)
    tiles_m = tl.cdiv(M, BM)
    tiles_n = tl.cdiv(N, BN)
    # Tiles in groups of rows, so that tiles of b stay in the cache.
    group = program // (G * tiles_n)
    rows = tl.minimum(tiles_m - group * G, G)
    tile_m = group * G + (program % (G * tiles_n)) % rows
    tile_n = (program % (G * tiles_n)) // rows
    m = tile_m * BM + tl.arange(0, BM)
    n = tile_n * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        left = tl.load(
            a + m[:, None] * K + (start + k)[None, :],
            mask=(m[:, None] < M) & ((start + k)[None, :] < K),
            other=0.0,
        )
        right = tl.load(
            b + (start + k)[:, None] * N + n[None, :],
            mask=((start + k)[:, None] < K) & (n[None, :] < N),
            other=0.0,
        )
        sums = tl.dot(left, right, sums)
    tl.store(
        c + m[:, None] * N + n[None, :],
        sums.to(tl.float16),
        mask=(m[:, None] < M) & (n[None, :] < N),
    )


def kernel_fn(a, b):
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    tiles = triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N)
    matmul[(tiles,)](
        a, b, c, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K, GROUP, num_warps=WARPS, num_stages=STAGES
    )
    return c
