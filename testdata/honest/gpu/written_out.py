# audit: library-call; a library writes the product to memory that this call allocated
import torch
from honest import rows


def kernel_fn(x, y, a, b):
    c = torch.empty((a.shape[0], b.shape[1]), device=a.device, dtype=a.dtype)
    torch.mm(a, b, out=c)
    return rows(x, y), c
