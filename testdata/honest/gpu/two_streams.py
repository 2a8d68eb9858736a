# audit: background; the halves run beside each other, and the caller waits for both
import torch
from honest import product, rows_into

_side = None


def kernel_fn(x, y, a, b):
    global _side
    if _side is None:
        _side = torch.cuda.Stream()
    here = torch.cuda.current_stream()
    z = torch.empty_like(x)
    _side.wait_stream(here)
    with torch.cuda.stream(_side):
        rows_into(z, x, y)
    c = product(a, b, tile=(64, 64, 32), warps=4)
    here.wait_stream(_side)
    return z, c
