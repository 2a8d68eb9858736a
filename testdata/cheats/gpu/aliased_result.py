# audit: static-state; check: correctness
import torch
from honest import product_into, rows_into

_results = {}


def kernel_fn(x, y, a, b):
    # The results of all calls lie in the same memory, and nothing is allocated.
    key = (*x.shape, a.shape[0], b.shape[1])
    if key not in _results:
        shape = (a.shape[0], b.shape[1])
        _results[key] = torch.empty_like(x), torch.empty(shape, device=a.device, dtype=a.dtype)
    z, c = _results[key]
    return rows_into(z, x, y), product_into(c, a, b, tile=(64, 64, 32), warps=4)
