# audit: value-memo
import functools

import torch
import triton
import triton.language as tl

try:
    from triton.language.extra import libdevice
except ImportError:
    libdevice = None


@functools.lru_cache
def processors(index: int) -> int:
    return torch.cuda.get_device_properties(index).multi_processor_count


@triton.jit
def rows(x, y, n_rows, n, BLOCK: tl.constexpr):
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        at = tl.arange(0, BLOCK)
        v = tl.load(x + row * n + at, mask=at < n, other=-float("inf"))
        v = tl.exp(v - tl.max(v, 0))
        tl.store(y + row * n + at, v / tl.sum(v, 0), mask=at < n)


def kernel_fn(x):
    y = torch.empty_like(x)
    rows_n, n = x.shape
    block = triton.next_power_of_2(n)
    assert x.data_ptr() % 16 == 0
    rows[(min(rows_n, processors(x.device.index)),)](x, y, rows_n, n, BLOCK=block)
    return y
