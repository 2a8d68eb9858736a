# audit: clean
import numpy as np

_blocks = {64: 16, 128: 32}


def kernel_fn(x, y):
    block = _blocks.get(x.shape[0], 8)
    out = np.empty_like(x)
    for start in range(0, x.shape[0], block):
        out[start : start + block] = x[start : start + block] * y[start : start + block]
    return out
