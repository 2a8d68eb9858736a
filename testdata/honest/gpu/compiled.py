# audit: library-call; PyTorch's compiler makes the kernel of the rows
import torch
from honest import product


@torch.compile(dynamic=True)
def compiled_rows(x, y):
    values = x.float()
    return (torch.softmax(values, dim=1) * x.shape[1] * y.float() + values).half()


def kernel_fn(x, y, a, b):
    return compiled_rows(x, y), product(a, b, tile=(64, 64, 32), warps=4)
