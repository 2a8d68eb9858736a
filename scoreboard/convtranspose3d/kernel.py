"""A transposed convolution of volumes with a window of 3, stride 2, padding 1 and dilation 2, in bfloat16 with
float32 sums.

With stride and dilation both 2, an element at i reaches outputs at 2 (i + k) - 1 only: all of them odd. So
the outputs at odd places are a dense convolution of the input, and all others are zero. Channels are moved to
the end first, with a border of zeros, so that every element of the window is a product of two small
matrices. The dense result stays in the cache, from where the kernel of kernel.cu spreads it between zeros."""

import ctypes
import pathlib

import torch
import triton
import triton.language as tl

LIBRARY = ctypes.CDLL(str(pathlib.Path(__file__).parent / "build" / "kernel.so"))

# Rows of results of a program; a row has as many as the input.
# karve: knob ROWS in 4,8
ROWS = 8
# karve: knob WARPS in 4,8
WARPS = 8
# karve: knob STAGES in 2,3,4
STAGES = 4


def at(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


@triton.jit
def channels_last(x, packed, D, H, W, C: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    # Some rows of a plane with its border.
    p = tl.arange(0, ROWS * BLOCK)
    row = tl.program_id(0) * ROWS + p // BLOCK
    h, w = row - 1, p % BLOCK - 1
    d = tl.program_id(1) - 1
    n = tl.program_id(2).to(tl.int64)
    c = tl.arange(0, C)
    inside = (h >= 0) & (h < H) & (w >= 0) & (w < W) & (d >= 0) & (d < D)
    at = ((n * C + c[None, :]) * D + d) * H * W + (h * W + w)[:, None]
    v = tl.load(x + at, mask=inside[:, None], other=0.0)
    plane = n * (D + 2) + tl.program_id(1)
    to = ((plane * (H + 2) + row) * (W + 2) + w + 1)[:, None] * C + c[None, :]
    tl.store(packed + to, v, mask=((row < H + 2) & (w < W + 1))[:, None])


@triton.jit
def taps_first(w, packed, CI: tl.constexpr, CO: tl.constexpr):
    tap = tl.program_id(0)
    i = tl.arange(0, CI)
    o = tl.arange(0, CO)
    v = tl.load(w + (i[None, :] * CO + o[:, None]) * 27 + tap)
    tl.store(packed + (tap * CO + o[:, None]) * CI + i[None, :], v)


@triton.jit
def convolve(
    x, w, y, D, H, W: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, ROWS: tl.constexpr
):
    top = tl.program_id(0) * ROWS
    d = tl.program_id(1)
    n = tl.program_id(2).to(tl.int64)
    p = tl.arange(0, ROWS * W)
    i = tl.arange(0, CI)
    o = tl.arange(0, CO)
    # With its border, an input has two more in each direction.
    here = ((n * (D + 2) + d) * (H + 2) + top + p // W) * (W + 2) + p % W
    at = x + here[:, None] * CI + i[None, :]
    weights = w + o[:, None] * CI + i[None, :]
    sums = tl.zeros((CO, ROWS * W), dtype=tl.float32)
    for tap in range(27):
        # Backward: the last element of the window meets the first of the input.
        kd, kh, kw = 2 - tap // 9, 2 - tap // 3 % 3, 2 - tap % 3
        v = tl.load(at + ((kd * (H + 2) + kh) * (W + 2) + kw) * CI)
        sums = tl.dot(tl.load(weights + tap * CI * CO), tl.trans(v), sums)
    to = ((n * CO + o[:, None]) * D + d) * H * W + (top * W + p)[None, :]
    tl.store(y + to, sums.to(y.dtype.element_ty))


def kernel_fn(x, w):
    n, ci, d, h, wide = x.shape
    co = w.shape[1]
    padded = torch.empty((n, d + 2, h + 2, wide + 2, ci), device=x.device, dtype=x.dtype)
    weights = torch.empty((27, co, ci), device=x.device, dtype=x.dtype)
    dense = torch.empty((n, co, d, h, wide), device=x.device, dtype=x.dtype)
    y = torch.empty((n, co, 2 * d + 1, 2 * h + 1, 2 * wide + 1), device=x.device, dtype=x.dtype)
    block = triton.next_power_of_2(wide + 2)
    planes = (triton.cdiv(h + 2, 4), d + 2, n)
    channels_last[planes](x, padded, d, h, wide, ci, 4, block, num_warps=8)
    taps_first[(27,)](w, weights, ci, co)
    grid = (h // ROWS, d, n)
    convolve[grid](
        padded, weights, dense, d, h, wide, ci, co, ROWS, num_warps=WARPS, num_stages=STAGES
    )
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    code = LIBRARY.spread(n * co, d, h, wide, at(dense), at(y), stream)
    if code != 0:
        raise RuntimeError(f"CUDA error {code}")
    return y
