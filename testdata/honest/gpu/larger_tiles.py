# audit: clean; other tiles and more warps
import torch
from honest import product, rows


def kernel_fn(x, y, a, b):
    return rows(x, y), product(a, b, tile=(64, 64, 32), warps=4)
