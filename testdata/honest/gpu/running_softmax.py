# audit: clean; a row in parts, with a running maximum and a running sum
import torch
import triton
import triton.language as tl
from honest import product


@triton.jit
def running_kernel(x, y, z, C, BLOCK: tl.constexpr):
    start = tl.program_id(0) * C
    most = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in range(0, C, BLOCK):
        at = part + tl.arange(0, BLOCK)
        values = tl.load(x + start + at, mask=at < C, other=-65504.0).to(tl.float32)
        larger = tl.maximum(most, values)
        total = total * tl.exp(most - larger) + tl.where(at < C, tl.exp(values - larger), 0.0)
        most = larger
    top = tl.max(most, axis=0)
    share = C / tl.sum(total * tl.exp(most - top), axis=0)
    for part in range(0, C, BLOCK):
        at = part + tl.arange(0, BLOCK)
        values = tl.load(x + start + at, mask=at < C, other=0.0).to(tl.float32)
        scale = tl.load(y + start + at, mask=at < C, other=0.0).to(tl.float32)
        result = tl.exp(values - top) * share * scale + values
        tl.store(z + start + at, result.to(tl.float16), mask=at < C)


def kernel_fn(x, y, a, b):
    z = torch.empty_like(x)
    running_kernel[(x.shape[0],)](x, y, z, x.shape[1], 256, num_warps=4)
    return z, product(a, b, tile=(64, 64, 32), warps=4)
