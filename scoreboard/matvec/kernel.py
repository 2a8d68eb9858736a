"""The product of a wide matrix and a vector, in bfloat16 with float32 sums. A program multiplies a part of
some rows; the parts are added up by a second launch."""

import torch
import triton
import triton.language as tl

# karve: knob ROWS in 1,2,4
ROWS = 1
# karve: knob BLOCK in 512,1024,2048,4096
BLOCK = 2048
# karve: knob SPLITS in 4,8,16,32
SPLITS = 8
# karve: knob WARPS in 4,8
WARPS = 8
# karve: knob AHEAD in 1,2,4
AHEAD = 2


@triton.jit
def parts(
    a, x, sums, M, N, LENGTH,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, AHEAD: tl.constexpr, WHOLE: tl.constexpr,
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    begin = tl.program_id(1) * LENGTH
    end = tl.minimum(begin + LENGTH, N)
    at = a + rows[:, None].to(tl.int64) * N
    total = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for start in tl.range(begin, end, BLOCK, loop_unroll_factor=AHEAD):
        columns = start + tl.arange(0, BLOCK)
        if WHOLE:
            v = tl.load(x + columns, eviction_policy="evict_last").to(tl.float32)
            m = tl.load(at + columns[None, :], eviction_policy="evict_first")
        else:
            inside = columns < end
            v = tl.load(x + columns, mask=inside, other=0.0).to(tl.float32)
            both = (rows < M)[:, None] & inside[None, :]
            m = tl.load(at + columns[None, :], mask=both, other=0.0)
        total += m.to(tl.float32) * v[None, :]
    tl.store(sums + tl.program_id(1) * M + rows, tl.sum(total, axis=1), mask=rows < M)


@triton.jit
def add_up(sums, y, M, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.arange(0, SPLITS)[:, None] * M + rows[None, :]
    v = tl.load(sums + at, mask=rows[None, :] < M, other=0.0)
    tl.store(y + rows, tl.sum(v, axis=0).to(y.dtype.element_ty), mask=rows < M)


def kernel_fn(a, x):
    m, n = a.shape
    sums = torch.empty((SPLITS, m), device=a.device, dtype=torch.float32)
    y = torch.empty((m, 1), device=a.device, dtype=a.dtype)
    length = triton.cdiv(triton.cdiv(n, SPLITS), BLOCK) * BLOCK
    whole = m % ROWS == 0 and length * SPLITS == n
    parts[(triton.cdiv(m, ROWS), SPLITS)](
        a, x, sums, m, n, length, ROWS, BLOCK, AHEAD, whole, num_warps=WARPS
    )
    add_up[(triton.cdiv(m, 32),)](sums, y, m, SPLITS, 32, num_warps=1)
    return y
