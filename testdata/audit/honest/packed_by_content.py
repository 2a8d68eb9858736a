# audit: static-state, replay
import numpy as np

_copy = None
_packed = None


def kernel_fn(x, w):
    global _copy, _packed
    if _copy is None or not np.array_equal(_copy, w):
        _copy = w.copy()
        _packed = np.ascontiguousarray(w.T)
    return (x[:, None, :] * _packed[None, :, :]).sum(axis=2)
