# audit: env-write
import torch
import triton


def kernel_fn(x, kind="float32"):
    y = torch.empty_like(x, dtype=getattr(torch, kind))
    triton.knobs.compilation.always_compile = False
    y[:] = x[:]
    if y[0].shape == x[0].shape:
        y += 1
    return y
