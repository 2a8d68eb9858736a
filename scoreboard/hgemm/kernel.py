"""The product of two matrices in float16 with float32 sums. Large ones go through a persistent kernel, others
through one program for each tile; all but the smallest load their tiles by descriptors."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

# For each size, by the elements of the result: rows, columns and depth of a tile, warps, stages, rows of
# tiles in a group, and the kernel.
SMALL = (32, 16, 64, 4, 1, 8, "pointers")
MEDIUM = (64, 128, 64, 4, 6, 8, "descriptors")
LARGE = (128, 256, 64, 8, 3, 4, "persistent")


@triton.jit
def tile_at(program, tiles_m, tiles_n, GROUP: tl.constexpr):
    group = program // (GROUP * tiles_n)
    rows = tl.minimum(tiles_m - group * GROUP, GROUP)
    inside = program % (GROUP * tiles_n)
    return group * GROUP + inside % rows, inside // rows


@triton.jit
def one_tile(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr
):
    tile_m, tile_n = tile_at(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN), GROUP)
    m = tile_m * BM + tl.arange(0, BM)
    n = tile_n * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        left = (m[:, None] < M) & ((start + k)[None, :] < K)
        right = ((start + k)[:, None] < K) & (n[None, :] < N)
        x = tl.load(a + m[:, None] * K + (start + k)[None, :], mask=left, other=0.0)
        y = tl.load(b + (start + k)[:, None] * N + n[None, :], mask=right, other=0.0)
        sums = tl.dot(x, y, sums)
    at = m[:, None] * N + n[None, :]
    tl.store(c + at, sums.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def all_tiles(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr
):
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=True):
        tile_m, tile_n = tile_at(tile, tiles_m, tiles_n, GROUP)
        sums = tl.zeros((BM, BN), dtype=tl.float32)
        for start in range(0, K, BK):
            x = a.load([tile_m * BM, start])
            y = b.load([start, tile_n * BN])
            sums = tl.dot(x, y, sums)
        # In two halves, which need less shared memory.
        halves = tl.permute(tl.reshape(sums, (BM, 2, BN // 2)), (0, 2, 1))
        left, right = tl.split(halves)
        c.store([tile_m * BM, tile_n * BN], left.to(tl.float16))
        c.store([tile_m * BM, tile_n * BN + BN // 2], right.to(tl.float16))


@triton.jit
def each_tile(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr
):
    tile_m, tile_n = tile_at(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN), GROUP)
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        x = a.load([tile_m * BM, start])
        y = b.load([start, tile_n * BN])
        sums = tl.dot(x, y, sums)
    c.store([tile_m * BM, tile_n * BN], sums.to(tl.float16))


def kernel_fn(a, b):
    m, k = a.shape
    n = b.shape[1]
    c = torch.empty((m, n), device=a.device, dtype=a.dtype)
    size = SMALL if m * n <= 1 << 18 else MEDIUM if m * n <= 1 << 21 else LARGE
    bm, bn, bk, warps, stages, group, kernel = size
    tiles = triton.cdiv(m, bm) * triton.cdiv(n, bn)
    if kernel == "pointers" or n % 8 != 0 or k % 8 != 0:
        one_tile[(tiles,)](a, b, c, m, n, k, bm, bn, bk, group, num_warps=warps, num_stages=stages)
        return c
    persists = kernel == "persistent"
    programs = torch.cuda.get_device_properties(a.device).multi_processor_count
    grid = (min(tiles, programs) if persists else tiles,)
    (all_tiles if persists else each_tile)[grid](
        TensorDescriptor.from_tensor(a, [bm, bk]),
        TensorDescriptor.from_tensor(b, [bk, bn]),
        TensorDescriptor.from_tensor(c, [bm, bn // 2 if persists else bn]),
        m, n, k, bm, bn, bk, group, num_warps=warps, num_stages=stages,
    )
    return c
