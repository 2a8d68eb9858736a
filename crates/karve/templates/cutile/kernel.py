"""The kernel: c = a @ b in float16, in cuTile. karve calls kernel_fn and checks what it returns."""

import cuda.tile as ct
import torch

# karve: knob TILE_M in 32,64,128
TILE_M = 32
# karve: knob TILE_N in 32,64,128,256
TILE_N = 32
# karve: knob TILE_K in 32,64,128
TILE_K = 32
# Rows of tiles that neighboring blocks share.
# karve: knob GROUP_SIZE_M in 1,4,8,16
GROUP_SIZE_M = 1
# Blocks that should fit a multiprocessor.
# karve: knob OCCUPANCY in 1,2,4
OCCUPANCY = 1


@ct.kernel(occupancy=OCCUPANCY)
def matmul(a, b, c, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int],
           GROUP: ct.Constant[int]):
    block = ct.bid(0)
    tiles_m = ct.cdiv(c.shape[0], TM)
    tiles_n = ct.cdiv(c.shape[1], TN)
    # Tiles in groups of rows, so that tiles of b stay in the cache.
    first = block // (GROUP * tiles_n) * GROUP
    rows = min(tiles_m - first, GROUP)
    inside = block % (GROUP * tiles_n)
    m = first + inside % rows
    n = inside // rows
    sums = ct.full((TM, TN), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(TM, TK))):
        # Zeros beyond the end add nothing to the sums.
        left = ct.load(a, index=(m, k), shape=(TM, TK), padding_mode=ct.PaddingMode.ZERO)
        right = ct.load(b, index=(k, n), shape=(TK, TN), padding_mode=ct.PaddingMode.ZERO)
        sums = ct.mma(left, right, sums)
    ct.store(c, index=(m, n), tile=ct.astype(sums, c.dtype))


def kernel_fn(a, b):
    M, N = a.shape[0], b.shape[1]
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    tiles = ct.cdiv(M, TILE_M) * ct.cdiv(N, TILE_N)
    arguments = (a, b, c, TILE_M, TILE_N, TILE_K, GROUP_SIZE_M)
    ct.launch(torch.cuda.current_stream(), (tiles, 1, 1), matmul, arguments)
    return c
