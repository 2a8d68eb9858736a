# audit: float-env, library-call; check: correctness
import torch
from honest import rows

torch.backends.cuda.matmul.allow_fp16_accumulation = True


def kernel_fn(x, y, a, b):
    return rows(x, y), torch.matmul(a, b)
