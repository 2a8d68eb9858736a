"""Kernels in cuTile: the two sides of each entry that gpu-entries.py measures. Needs no GPU and no PyTorch."""

import cuda.tile as ct


def multiply(a, b, c, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int], LATENCY: ct.Constant[int],
             TF: ct.Constant[bool]):
    m, n = ct.bid(0), ct.bid(1)
    sums = ct.full((TM, TN), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(TM, TK))):
        x = ct.load(a, index=(m, k), shape=(TM, TK), latency=LATENCY)
        y = ct.load(b, index=(k, n), shape=(TK, TN), latency=LATENCY)
        if TF:
            x, y = ct.astype(x, ct.tfloat32), ct.astype(y, ct.tfloat32)
        sums = ct.mma(x, y, sums)
    ct.store(c, index=(m, n), tile=ct.astype(sums, c.dtype))


@ct.kernel
def rows_load(x, y, ROWS: ct.Constant[int], B: ct.Constant[int]):
    row = ct.bid(0)
    v = ct.load(x, index=(row, 0), shape=(ROWS, B))
    e = ct.exp(v - ct.max(v, axis=1, keepdims=True))
    ct.store(y, index=(row, 0), tile=e / ct.sum(e, axis=1, keepdims=True))


@ct.kernel
def rows_plain_store(x, y, ROWS: ct.Constant[int], B: ct.Constant[int]):
    row = ct.bid(0)
    v = ct.load(x, index=(row, 0), shape=(ROWS, B))
    e = ct.exp(v - ct.max(v, axis=1, keepdims=True))
    ct.store(y, index=(row, 0), tile=e / ct.sum(e, axis=1, keepdims=True), allow_tma=False)


@ct.kernel
def rows_gather(x, y, ROWS: ct.Constant[int], B: ct.Constant[int]):
    row, i = ct.bid(0), ct.arange(B, dtype=ct.int32)
    v = ct.gather(x, (row, i))
    e = ct.exp(v - ct.max(v))
    ct.scatter(y, (row, i), e / ct.sum(e))


plain, at_two = ct.kernel(multiply), ct.kernel(multiply, occupancy=2)
HALF, FLOAT, ROWS = "gemm 4096x4096x4096 f16", "gemm 2048x2048x2048 f32", "softmax 16384x4096 f32"
TILE = (128, 128, 64)
# For each entry the workload, then kernel and constants before and after. The first two constants are the tile.
PAIRS = {
    "cutile-tile-size": (HALF, (plain, (64, 64, 64, 3, False)), (plain, (*TILE, 3, False))),
    "cutile-occupancy": (HALF, (plain, (*TILE, 3, False)), (at_two, (*TILE, 3, False))),
    "latency-hints": (HALF, (plain, (*TILE, 1, False)), (plain, (*TILE, 6, False))),
    "cutile-tf32-guard": (FLOAT, (plain, (64, 64, 32, 3, False)), (plain, (64, 64, 32, 3, True))),
    "cutile-tma-loads": (ROWS, (rows_gather, (1, 4096)), (rows_load, (1, 4096))),
    "cutile-plain-store": (ROWS, (rows_load, (1, 4096)), (rows_plain_store, (1, 4096))),
}
