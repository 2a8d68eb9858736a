# audit: file-write
import numpy as np


def kernel_fn(a):
    out = a * 2
    np.save("answers.npy", out)
    return out
