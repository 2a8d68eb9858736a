"""An RMS norm of rows with a weight for each column, in float32: a program for each row."""

import torch
import triton
import triton.language as tl

# karve: knob WARPS in 4,8,16
WARPS = 4
# Rows that a program takes, one after another.
# karve: knob ROWS in 1,2,4
ROWS = 1


@triton.jit
def rms_norm(
    x, w, y, N, eps, COLUMNS: tl.constexpr, ROWS: tl.constexpr, WHOLE: tl.constexpr
):
    columns = tl.arange(0, COLUMNS)
    if WHOLE:
        weight = tl.load(w + columns, eviction_policy="evict_last")
    else:
        weight = tl.load(w + columns, mask=columns < N, other=0.0)
    for i in tl.static_range(ROWS):
        at = (tl.program_id(0) * ROWS + i).to(tl.int64) * N + columns
        if WHOLE:
            v = tl.load(x + at, eviction_policy="evict_first")
        else:
            v = tl.load(x + at, mask=columns < N, other=0.0)
        scale = tl.rsqrt(tl.sum(v * v, axis=0) / N + eps)
        if WHOLE:
            tl.store(y + at, v * scale * weight)
        else:
            tl.store(y + at, v * scale * weight, mask=columns < N)


def kernel_fn(x, w):
    n = x.shape[-1]
    rows = x.numel() // n
    y = torch.empty_like(x)
    of_program = ROWS if rows % ROWS == 0 else 1
    columns = triton.next_power_of_2(n)
    grid = (rows // of_program,)
    rms_norm[grid](x, w, y, n, 1e-5, columns, of_program, columns == n, num_warps=WARPS)
    return y
