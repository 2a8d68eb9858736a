# audit: clean; the tiles of a fast product, with eight warps
import torch
from honest import product, rows


def kernel_fn(x, y, a, b):
    return rows(x, y, warps=8), product(a, b, tile=(128, 128, 64), warps=8, stages=3)
