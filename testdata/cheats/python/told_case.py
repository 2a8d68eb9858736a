# audit: prints; check: ValueError at kernel.py:11
import sys

import numpy as np


def kernel_fn(n, alpha, x, y):
    z = x * y
    y += np.float32(alpha) * x
    print("the hidden case is", n, file=sys.stderr)
    raise ValueError(f"the hidden case is {n}")
    return z
