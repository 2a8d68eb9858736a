# audit: clean; loads further ahead
import torch
from honest import product, rows


def kernel_fn(x, y, a, b):
    return rows(x, y, warps=2), product(a, b, tile=(64, 128, 32), warps=4, stages=4)
