#!/usr/bin/env python3
"""Measures what entries of the library are worth on this GPU: pairs of small kernels, before and after.

    testing/gpu-entries.py [ENTRY...] [--limit SECONDS] > entries.jsonl
    testing/gpu-entries.py --only ENTRY,ENTRY [--limit SECONDS] [--each SECONDS] > entries.jsonl

Needs a GPU, PyTorch, Triton and nvcc; entries of cuTile and CuTe DSL only if these are installed. Takes less
than three minutes. With --only each entry has a process of its own, which is ended after --each seconds, and
what has no figure is named with its reason.

Prints a line of JSON for each entry: the medians before and after in microseconds, the median of the ratios of
pairs with its 95% interval, their number, and the workload. Both sides are called in turns, in random order, with
a cold L2; their results must agree. For an anti-pattern "after" is the kernel that has it, so its ratio is below
1. testing/entries/enter.py writes the figures into the entries.
"""

import argparse
import ctypes
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
STARTED = time.time()
HERE = os.path.dirname(os.path.abspath(__file__))
OPTIONS = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
OPTIONS.add_argument("entries", nargs="*", metavar="ENTRY")
OPTIONS.add_argument("--only", default="", type=lambda names: [name for name in names.split(",") if name])
OPTIONS.add_argument("--limit", default=170, type=float, help="seconds for all")
OPTIONS.add_argument("--each", default=60, type=float, help="seconds for each entry of --only")
GIVEN = OPTIONS.parse_args()


def wanted(entry):
    return not GIVEN.entries or entry in GIVEN.entries


def one_by_one():
    """Each entry in a process of its own, so that none is lost to the fault of another. Fails if one has no figure."""
    failed = []
    for name in GIVEN.only:
        left = GIVEN.limit - (time.time() - STARTED)
        reason = alone(name, min(left, GIVEN.each)) if left > 1 else "no time left"
        if reason:
            failed.append(name)
            print("%s failed: %s" % (name, reason), file=sys.stderr, flush=True)
    print("%d of %d entries have a figure" % (len(GIVEN.only) - len(failed), len(GIVEN.only)), file=sys.stderr)
    sys.exit(1 if failed else 0)


def alone(name, seconds):
    """Measures one entry in another process; why there is no figure, or None."""
    command = [sys.executable, os.path.abspath(__file__), "--limit", str(seconds), name]
    begin = time.time()
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return "ended after %.0f s" % seconds
    print("%s: %.1f s" % (name, time.time() - begin), file=sys.stderr, flush=True)
    lines = [line for line in ran.stdout.split("\n") if line.startswith("{")]
    for line in lines:
        print(line, flush=True)
    if lines:
        return None if json.loads(lines[0])["agrees"] else "the two sides disagree"
    return " | ".join(ran.stderr.strip().split("\n")[-6:])[-1500:] or "nothing measures it"


if GIVEN.only:
    one_by_one()

import torch
import triton
import triton.language as tl

DEVICE = torch.device("cuda")
PAIRS = 41
# Each pair of an entry that is measured on the host takes longer.
PAIRS_HOST = 25


# --- measuring ----------------------------------------------------------------------------------------

FLUSH = torch.empty(512 << 20, dtype=torch.uint8, device=DEVICE)


def on_device(call):
    """Microseconds of one call on the device, with a cold L2. While it is overwritten, the call is queued."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    FLUSH.zero_()
    begin.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1000


def on_host(call):
    """Microseconds of one call until the device has finished."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 1e6


def interval(values):
    """The 95% interval of a median, from the order of the values."""
    values = sorted(values)
    n = len(values)
    out = int((n - 1.96 * math.sqrt(n)) / 2)
    return values[max(out, 0)], values[min(n - 1 - out, n - 1)]


def measure(entry, *args, **named):
    """Prints what one entry is worth, or on standard error why that is not known."""
    if not wanted(entry):
        return
    try:
        print(json.dumps(measured(entry, *args, **named)), flush=True)
    except Exception as error:
        complain(entry, error)


def complain(what, error):
    text = " ".join(str(error).split())[:600]
    print("%s failed: %s: %s" % (what, type(error).__name__, text), file=sys.stderr)


def measured(entry, workload, before, after, clock=on_device, tolerance=1e-3, pairs=None):
    """What one entry is worth. `before` and `after` return what they computed."""
    first, second = before(), after()
    torch.cuda.synchronize()
    error = 0.0
    if first is not None:
        first, second = first.double(), second.double()
        scale = first.abs().max().item() or 1.0
        error = (first - second).abs().max().item() / scale
    del first, second
    times = ([], [])
    for _ in range(3):
        clock(before), clock(after)
    for _ in range(pairs or (PAIRS if clock is on_device else PAIRS_HOST)):
        order = [0, 1]
        random.shuffle(order)
        for side in order:
            times[side].append(clock((before, after)[side]))
    ratios = [a / b for a, b in zip(*times)]
    low, high = interval(ratios)
    digits = lambda x: float("%.4g" % x)
    return {
        "entry": entry,
        "before_us": digits(statistics.median(times[0])),
        "after_us": digits(statistics.median(times[1])),
        "ratio": digits(statistics.median(ratios)),
        "low": digits(low),
        "high": digits(high),
        "n": len(ratios),
        "shape": workload,
        "device": torch.cuda.get_device_name(0),
        "agrees": error <= tolerance,
        "error": digits(error),
        "toolchain": "torch %s, triton %s, CUDA %s"
        % (torch.__version__.split("+")[0], triton.__version__, torch.version.cuda),
    }


ENTRIES = []


def entry(*names):
    """Registers a function that measures these entries."""

    def register(make):
        ENTRIES.append((make, names))
        return make

    return register


# --- CUDA -----------------------------------------------------------------------------------------------

def compiled():
    place = tempfile.mkdtemp()
    path = os.path.join(place, "kernels.so")
    major, minor = torch.cuda.get_device_capability()
    subprocess.run(
        ["nvcc", "-O3", "-std=c++17", "-arch=sm_%d%d" % (major, minor), "-shared", "-Xcompiler", "-fPIC", "-o", path,
         os.path.join(HERE, "entries", "kernels.cu")],
        check=True,
    )
    return ctypes.CDLL(path)


CUDA = None


def cuda(name, *args, result=None):
    """A call of an entry point of kernels.cu."""
    global CUDA
    CUDA = CUDA or compiled()
    function = getattr(CUDA, name)
    values = [ctypes.c_void_p(a.data_ptr()) if torch.is_tensor(a) else ctypes.c_int(a) for a in args]
    values.append(ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))

    def call(keep=args):
        function(*values)
        return result

    return call


def normal(*shape, dtype=torch.float32):
    return torch.randn(*shape, device=DEVICE, dtype=dtype)


@entry("coalesced-access", "vectorized-loads", "conflict-free-shared", "read-only-loads")
def memory_access():
    x, y = normal(8192, 8192), normal(8192, 8192)
    fresh = lambda: torch.empty_like(x)
    pair = lambda one, other, *sizes: [cuda(n, x, y2, *sizes, result=y2) for n, y2 in ((one, y), (other, fresh()))]
    measure("coalesced-access", "elementwise scale 8192x8192 f32", *pair("strided", "coalesced", 8192))
    measure("vectorized-loads", "elementwise scale 67108864 f32", *pair("loads_4", "loads_16", 1 << 26))
    measure("conflict-free-shared", "transpose 8192x8192 f32", *pair("banks_shared", "banks_padded", 8192))
    w = normal(8)
    one, other = torch.zeros_like(x), torch.zeros_like(x)
    measure("read-only-loads", "stencil of 8 taps over 67108864 f32",
            cuda("may_alias", x, w, one, 1 << 26, result=one), cuda("read_only", x, w, other, 1 << 26, result=other))


@entry("block-then-atomic", "warp-shuffle-reduction", "more-work-in-flight", "no-register-spills", "raise-occupancy",
       "private-partials")
def sums():
    x = normal(1 << 26)
    one, other = torch.zeros(1 << 19, device=DEVICE), torch.zeros(1 << 19, device=DEVICE)
    both = lambda a, b, *sizes: [cuda(n, x, o, *sizes, result=o) for n, o in ((a, one), (b, other))]
    measure("block-then-atomic", "sum of 16777216 f32", *both("atomic_each", "atomic_block", 1 << 24), tolerance=1)
    measure("warp-shuffle-reduction", "sum of rows 65536x1024 f32", *both("reduce_tree", "reduce_shuffles", 65536, 1024))
    measure("more-work-in-flight", "sum of squares of 67108864 f32", *both("in_flight_1", "in_flight_8", 1 << 26))
    measure("no-register-spills", "16 recurrences over 67108864 f32", *both("spilled", "in_registers", 1 << 26))
    y, z = torch.zeros_like(x), torch.zeros_like(x)
    measure("raise-occupancy", "elementwise scale 67108864 f32 through shared memory",
            cuda("occupancy_low", x, y, 1 << 26, result=y), cuda("occupancy_high", x, z, 1 << 26, result=z))
    bins = torch.randint(0, 1 << 30, (1 << 26,), device=DEVICE, dtype=torch.int32)
    measure("private-partials", "histogram of 67108864 values, 256 bins",
            cuda("histogram_global", bins, one, 1 << 26, result=one[:256].view(torch.int32)),
            cuda("histogram_private", bins, other, 1 << 26, result=other[:256].view(torch.int32)))


@entry("shared-memory-tiling", "register-tiling", "async-copy")
def products():
    n = 2048
    a, b, c, d = normal(n, n), normal(n, n), normal(n, n), normal(n, n)
    pair = lambda one, other: [cuda(one, a, b, c, n, result=c), cuda(other, a, b, d, n, result=d)]
    measure("shared-memory-tiling", "gemm 2048x2048x2048 f32", *pair("gemm_plain", "gemm_shared"))
    measure("register-tiling", "gemm 2048x2048x2048 f32", *pair("gemm_shared", "gemm_registers"))
    measure("async-copy", "gemm 2048x2048x2048 f32", *pair("gemm_registers", "gemm_ahead"))


@entry("gpu-row-per-block", "one-pass-softmax")
def rows():
    x = normal(16384, 4096)
    y, z = torch.empty_like(x), torch.empty_like(x)
    measure("gpu-row-per-block", "softmax 16384x4096 f32",
            cuda("row_again", x, y, 16384, 4096, result=y), cuda("row_registers", x, z, 16384, 4096, result=z))
    measure("one-pass-softmax", "softmax 256x262144 f32",
            cuda("row_again", x, y, 256, 262144, result=y), cuda("row_online", x, z, 256, 262144, result=z))


@entry("sparse-row-split-gpu")
def sparse():
    many = torch.full((65536,), 8, dtype=torch.int64)
    many[::1024] = 100_000
    start = torch.cat([torch.zeros(1, dtype=torch.int64), many.cumsum(0)]).to(DEVICE, torch.int32)
    entries = int(many.sum())
    column = torch.randint(0, 65536, (entries,), device=DEVICE, dtype=torch.int32)
    value, x = normal(entries), normal(65536)
    y, z = torch.zeros(65536, device=DEVICE), torch.zeros(65536, device=DEVICE)
    given = lambda out: (start, column, value, x, out, 65536, entries)
    measure("sparse-row-split-gpu", "spmv, 65536 rows, 64 of them with 100000 entries",
            cuda("sparse_rows", *given(y), result=y), cuda("sparse_shares", *given(z), result=z))


@entry("barrier-by-atomics")
def barrier():
    x = normal(1 << 24)
    spaces = [torch.empty_like(x) for _ in range(4)]
    arrived = torch.zeros(1, device=DEVICE, dtype=torch.int32)
    measure("barrier-by-atomics", "two steps over 16777216 f32",
            cuda("two_launches", x, spaces[0], spaces[1], arrived, 1 << 24, result=spaces[1]),
            cuda("one_barrier", x, spaces[2], spaces[3], arrived, 1 << 24, result=spaces[3]))


# --- Triton -----------------------------------------------------------------------------------------------

@triton.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, G: tl.constexpr,
            MASKED: tl.constexpr, PARTS: tl.constexpr, PRECISION: tl.constexpr):
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    group = pid // (G * tiles_n)
    rows = tl.minimum(tiles_m - group * G, G)
    m = (group * G + (pid % (G * tiles_n)) % rows) * BM + tl.arange(0, BM)
    n = ((pid % (G * tiles_n)) // rows) * BN + tl.arange(0, BN)
    part = K // PARTS
    first = tl.program_id(1) * part
    k = first + tl.arange(0, BK)
    left = a + m[:, None] * K + k[None, :]
    right = b + k[:, None] * N + n[None, :]
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(0, part, BK):
        if MASKED:
            x = tl.load(left, mask=(m[:, None] < M) & (k[None, :] + i < K), other=0.0)
            y = tl.load(right, mask=(k[:, None] + i < K) & (n[None, :] < N), other=0.0)
        else:
            x, y = tl.load(left), tl.load(right)
        sums = tl.dot(x, y, sums, input_precision=PRECISION)
        left += BK
        right += BK * N
    to = c + m[:, None] * N + n[None, :]
    if PARTS == 1:
        tl.store(to, sums.to(c.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))
    else:
        tl.atomic_add(to, sums, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def product_persistent(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, G: tl.constexpr):
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for pid in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=True):
        group = pid // (G * tiles_n)
        rows = tl.minimum(tiles_m - group * G, G)
        m = (group * G + (pid % (G * tiles_n)) % rows) * BM + tl.arange(0, BM)
        n = ((pid % (G * tiles_n)) // rows) * BN + tl.arange(0, BN)
        k = tl.arange(0, BK)
        sums = tl.zeros((BM, BN), dtype=tl.float32)
        for i in range(0, K, BK):
            x = tl.load(a + m[:, None] * K + (i + k)[None, :])
            y = tl.load(b + (i + k)[:, None] * N + n[None, :])
            sums = tl.dot(x, y, sums)
        tl.store(c + m[:, None] * N + n[None, :], sums.to(c.dtype.element_ty))


def multiply(a, b, c, tile=(128, 128, 64), group=8, warps=8, stages=3, masked=True, parts=1, precision="tf32"):
    (M, K), N = a.shape, b.shape[1]
    grid = (triton.cdiv(M, tile[0]) * triton.cdiv(N, tile[1]), parts)

    def call():
        if parts > 1:
            c.zero_()
        product[grid](a, b, c, M, N, K, *tile, group, masked, parts, precision, num_warps=warps, num_stages=stages)
        return c

    return call


@entry("triton-block-sizes", "triton-warps-stages", "triton-even-masks", "tile-occupancy-sweep", "blind-large-tile")
def tiles():
    a, b = normal(4096, 4096, dtype=torch.float16), normal(4096, 4096, dtype=torch.float16)
    c, d = torch.empty_like(a), torch.empty_like(a)
    shape = "gemm 4096x4096x4096 f16"
    measure("triton-block-sizes", shape, multiply(a, b, c, (32, 32, 32), warps=4), multiply(a, b, d, warps=4),
            tolerance=5e-3)
    measure("triton-warps-stages", shape, multiply(a, b, c, (128, 256, 64), warps=4, stages=3),
            multiply(a, b, d, (128, 256, 64), warps=8, stages=3), tolerance=5e-3)
    measure("triton-even-masks", shape, multiply(a, b, c), multiply(a, b, d, masked=False), tolerance=5e-3)
    measure("tile-occupancy-sweep", shape, multiply(a, b, c, (64, 64, 32), warps=4, stages=2),
            multiply(a, b, d, (128, 256, 64), warps=8, stages=4), tolerance=5e-3)
    measure("blind-large-tile", shape, multiply(a, b, c), multiply(a, b, d, (256, 256, 32), warps=4, stages=2),
            tolerance=5e-3)


@entry("l2-swizzle", "persistent-kernel", "underfilled-persistent")
def grids():
    a, b = normal(8192, 8192, dtype=torch.float16), normal(8192, 8192, dtype=torch.float16)
    c, d = torch.empty_like(a), torch.empty_like(a)
    measure("l2-swizzle", "gemm 8192x8192x8192 f16", multiply(a, b, c, group=1, masked=False),
            multiply(a, b, d, group=8, masked=False), tolerance=5e-3)
    units = torch.cuda.get_device_properties(0).multi_processor_count
    small = [t[:, :512].contiguous() for t in (a, b)]
    x, y = small[0], small[1].t().contiguous()

    def persistent(blocks):
        def call():
            product_persistent[(blocks,)](x, y, d, 8192, 8192, 512, 128, 128, 64, 8, num_warps=8, num_stages=3)
            return d

        return call

    # The same kernel with a block for each tile, and with twice as many as multiprocessors.
    measure("persistent-kernel", "gemm 8192x8192x512 f16", persistent(64 * 64), persistent(units * 2),
            tolerance=5e-3)
    measure("underfilled-persistent", "gemm 8192x8192x512 f16", persistent(units), persistent(units // 2),
            tolerance=5e-3)


@entry("split-k")
def split():
    a, b = normal(256, 16384, dtype=torch.float16), normal(16384, 256, dtype=torch.float16)
    c, d = torch.empty(256, 256, device=DEVICE), torch.empty(256, 256, device=DEVICE)
    measure("split-k", "gemm 256x256x16384 f16", multiply(a, b, c, (64, 64, 64), warps=4, masked=False),
            multiply(a, b, d, (64, 64, 64), warps=4, masked=False, parts=16))


@entry("triton-ieee-dot", "tensor-cores")
def precision():
    a, b = normal(2048, 2048), normal(2048, 2048)
    c, d = torch.empty_like(a), torch.empty_like(a)
    measure("triton-ieee-dot", "gemm 2048x2048x2048 f32", multiply(a, b, c, (128, 128, 32), masked=False),
            multiply(a, b, d, (128, 128, 32), masked=False, precision="ieee"), tolerance=5e-3)

    def with_tf32(allowed):
        def call():
            torch.backends.cuda.matmul.allow_tf32 = allowed
            return torch.matmul(a, b)

        return call

    measure("tensor-cores", "gemm 2048x2048x2048 f32, TF32 allowed or not", with_tf32(False), with_tf32(True),
            tolerance=5e-3)


@triton.jit
def scale(x, y, n, FIRST: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, eviction_policy="evict_first" if FIRST else "")
    tl.store(y + i, v * 2, mask=i < n, eviction_policy="evict_first" if FIRST else "")


@triton.jit
def scale_clamp(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n).to(tl.float32)
    tl.store(y + i, tl.maximum(v * 2.0 + 1.0, 0.0), mask=i < n)


@entry("fuse-passes", "narrow-storage", "triton-eviction-policy")
def passes():
    n = 1 << 26
    x, y = normal(n), torch.empty(n, device=DEVICE)

    def fused(x, y):
        def call():
            scale_clamp[(n // 2048,)](x, y, n, 2048)
            return y

        return call

    measure("fuse-passes", "relu(2 x + 1) over 67108864 f32", lambda: torch.relu(x * 2.0 + 1.0), fused(x, y))
    half, half_y = x.half(), y.half()
    measure("narrow-storage", "relu(2 x + 1) over 67108864, f32 and f16", fused(x, y), fused(half, half_y),
            tolerance=5e-3)

    def evict(first, y):
        def call():
            scale[(n // 2048,)](x, y, n, first, 2048)
            return y

        return call

    measure("triton-eviction-policy", "elementwise scale 67108864 f32", evict(False, y), evict(True, torch.empty_like(y)))


@triton.jit
def softmax_step(s, values, top, sums, out, TWO: tl.constexpr):
    # One tile of the scores: the new maxima and sums of the rows, and the products so far.
    new = tl.maximum(top, tl.max(s, 1))
    p = tl.exp2(s - new[:, None]) if TWO else tl.exp(s - new[:, None])
    fix = tl.exp2(top - new) if TWO else tl.exp(top - new)
    out = tl.dot(p.to(tl.float16), values, out * fix[:, None])
    return new, sums * fix + tl.sum(p, 1), out


@triton.jit
def attention(q, k, v, o, S, scale, MODE: tl.constexpr, TWO: tl.constexpr, LAST_FIRST: tl.constexpr,
              BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    # MODE 0: all keys; 1: masked in every tile; 2: up to the diagonal, masked in every tile; 3: masked only there.
    tile = tl.program_id(0)
    if LAST_FIRST:
        tile = tl.num_programs(0) - 1 - tile
    base = tl.program_id(1) * S * D
    m, d = tile * BM + tl.arange(0, BM), tl.arange(0, D)
    own = tl.load(q + base + m[:, None] * D + d[None, :])
    top = tl.full((BM,), -float("inf"), tl.float32)
    sums = tl.zeros((BM,), tl.float32)
    out = tl.zeros((BM, D), tl.float32)
    factor = scale * 1.4426950408889634 if TWO else scale
    stop = S if MODE < 2 else (tile + 1) * BM
    plain = tile * BM if MODE == 3 else (S if MODE == 0 else 0)
    for start in range(0, plain, BN):
        n = start + tl.arange(0, BN)
        s = tl.dot(own, tl.trans(tl.load(k + base + n[:, None] * D + d[None, :]))) * factor
        values = tl.load(v + base + n[:, None] * D + d[None, :])
        top, sums, out = softmax_step(s, values, top, sums, out, TWO)
    for start in range(plain, stop, BN):
        n = start + tl.arange(0, BN)
        s = tl.dot(own, tl.trans(tl.load(k + base + n[:, None] * D + d[None, :]))) * factor
        s = tl.where(m[:, None] >= n[None, :], s, -float("inf"))
        values = tl.load(v + base + n[:, None] * D + d[None, :])
        top, sums, out = softmax_step(s, values, top, sums, out, TWO)
    tl.store(o + base + m[:, None] * D + d[None, :], (out / sums[:, None]).to(tl.float16))


@entry("fast-exp2-softmax", "uniform-causal-masking", "causal-loop-split", "causal-block-order")
def attentions():
    heads, S, D = 64, 4096, 64
    q, k, v = (normal(heads, S, D, dtype=torch.float16) for _ in range(3))

    def attend(mode, two=True, last_first=False, heads=heads):
        o = torch.empty_like(q)

        def call():
            attention[(S // 128, heads)](q, k, v, o, S, D**-0.5, mode, two, last_first, 128, 64, D, num_warps=4,
                                         num_stages=3)
            return o[:heads]

        return call

    shape = "attention, %d heads, 4096 keys of 64, f16" % heads
    measure("fast-exp2-softmax", shape, attend(0, two=False), attend(0), tolerance=5e-3)
    measure("uniform-causal-masking", shape + ", causal", attend(3), attend(1), tolerance=5e-3)
    measure("causal-loop-split", shape + ", causal", attend(2), attend(3), tolerance=5e-3)
    few = "attention, 16 heads, 4096 keys of 64, f16, causal"
    measure("causal-block-order", few, attend(3, heads=16), attend(3, last_first=True, heads=16), tolerance=5e-3)


# --- the host -------------------------------------------------------------------------------------------

@entry("launch-graph", "triton-no-item", "autotune-in-hot-path")
def host():
    x = normal(1 << 12)

    def steps(x):
        for _ in range(50):
            x = x * 1.01 + 0.01
        return x

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        steps(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = steps(x)

    def replay():
        graph.replay()
        return out

    measure("launch-graph", "100 kernels over 4096 f32", lambda: steps(x), replay, clock=on_host)

    y, n = torch.empty_like(x), torch.full((1,), 1 << 12, device=DEVICE)

    def wrapper(reads):
        def call():
            for _ in range(20):
                length = n.item() if reads else 1 << 12
                scale[(triton.cdiv(length, 1024),)](x, y, length, False, 1024)
            return y

        return call

    measure("triton-no-item", "20 launches over 4096 f32", wrapper(False), wrapper(True), clock=on_host)

    numbers = iter(range(10_000))

    def build(again):
        @triton.jit
        def add(x, y, NUMBER: tl.constexpr, B: tl.constexpr):
            i = tl.program_id(0) * B + tl.arange(0, B)
            tl.store(y + i, tl.load(x + i) + 0 * NUMBER)

        def call():
            add[(4,)](x, y, next(numbers) if again else 0, 1024)
            return y

        return call

    measure("autotune-in-hot-path", "a kernel over 4096 f32, compiled once or in each call", build(False), build(True),
            clock=on_host, pairs=9)


# --- cuTile and CuTe DSL ---------------------------------------------------------------------------------

# Their kernels are in files of their own: "entries/compile.py sm_90" compiles them without a GPU.

@entry("cutile-tile-size", "cutile-occupancy", "latency-hints", "cutile-tf32-guard", "cutile-tma-loads",
       "cutile-plain-store")
def cutile():
    import cuda.tile as ct
    from entries import tiles

    given = {
        "gemm 4096x4096x4096 f16": lambda: [normal(4096, 4096, dtype=torch.float16) for _ in range(2)],
        "gemm 2048x2048x2048 f32": lambda: [normal(2048, 2048) for _ in range(2)],
        "softmax 16384x4096 f32": lambda: [normal(16384, 4096)],
    }

    def call(side, arrays):
        kernel, constants = side
        out = torch.empty_like(arrays[0])
        grid = (out.shape[0] // constants[0], out.shape[1] // constants[1], 1)

        def run():
            ct.launch(torch.cuda.current_stream(), grid, kernel, (*arrays, out, *constants))
            return out

        return run

    for name, (shape, before, after) in tiles.PAIRS.items():
        if wanted(name):
            arrays = given[shape]()
            tolerance = 5e-3 if shape.startswith("gemm") else 1e-3
            measure(name, shape, call(before, arrays), call(after, arrays), tolerance=tolerance)


@entry("cute-compile-once", "cute-recompile-each-call")
def cute():
    import cutlass.cute as cute
    from cutlass.cute.runtime import from_dlpack
    from entries.cute_add import add

    x, y = normal(4096), normal(4096)
    given = [from_dlpack(t) for t in (x, y)]
    ready = cute.compile(add, *given)

    def each():
        cute.compile(add, *given)(*given)
        return y

    def on_the_fly():
        add(*[from_dlpack(t) for t in (x, y)])
        return y

    def once():
        ready(*given)
        return y

    measure("cute-compile-once", "a kernel over 4096 f32: called as it is, or compiled before", on_the_fly, once,
            clock=on_host)
    measure("cute-recompile-each-call", "a kernel over 4096 f32: compiled before, or in each call", once, each,
            clock=on_host, pairs=9)


def main():
    """Measures in this process: one entry that fails leaves the others alone, unless it takes the device with it."""
    random.seed(1)
    torch.manual_seed(1)
    for make, names in ENTRIES:
        if not any(wanted(name) for name in names):
            continue
        if time.time() - STARTED > GIVEN.limit:
            print("no time left for %s" % make.__name__, file=sys.stderr)
            continue
        begin = time.time()
        try:
            make()
        except Exception as error:
            complain(make.__name__, error)
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        print("%s took %.1f s" % (make.__name__, time.time() - begin), file=sys.stderr)


if __name__ == "__main__":
    main()
