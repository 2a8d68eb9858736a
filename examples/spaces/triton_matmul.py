"""Measures every setting of a Triton matmul and prints the space as a table for "karve tune".

    python3 triton_matmul.py [N] > triton-matmul.csv

The kernel multiplies two N x N matrices in half precision (N is 2048 unless told). Settings that
do not fit on the device are written as not valid. A time is the median of several batches, in
milliseconds, by the device's own clock. Compiling is spread over all CPUs.
"""

import itertools
import multiprocessing
import os
import statistics
import sys

import torch
import triton
import triton.language as tl

AXES = {
    "BLOCK_M": [32, 64, 128, 256],
    "BLOCK_N": [32, 64, 128, 256],
    "BLOCK_K": [32, 64, 128],
    "GROUP_M": [1, 4, 8, 16],
    "WARPS": [2, 4, 8],
    "STAGES": [1, 2, 3, 4, 5],
}


def is_wanted(setting):
    """Few elements for each thread waste it; too many spill."""
    each = setting["BLOCK_M"] * setting["BLOCK_N"] // (32 * setting["WARPS"])
    return 8 <= each <= 256


# Unless told not to, Triton compiles once more for a group of 1 and once more for one of 16.
@triton.jit(do_not_specialize=["group"])
def matmul(a, b, c, size, group, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    # Blocks that run at the same time share rows of A and columns of B.
    at = tl.program_id(0)
    across = tl.cdiv(size, N)
    band = group * across
    first = (at // band) * group
    height = tl.minimum(tl.cdiv(size, M) - first, group)
    row = first + (at % band) % height
    column = (at % band) // height
    rows = row * M + tl.arange(0, M)
    columns = column * N + tl.arange(0, N)
    depth = tl.arange(0, K)
    at_a = a + rows[:, None] * size + depth[None, :]
    at_b = b + depth[:, None] * size + columns[None, :]
    total = tl.zeros((M, N), dtype=tl.float32)
    for _ in range(0, tl.cdiv(size, K)):
        total = tl.dot(tl.load(at_a), tl.load(at_b), total)
        at_a += K
        at_b += K * size
    tl.store(c + rows[:, None] * size + columns[None, :], total.to(tl.float16))


def arguments(setting):
    return dict(
        M=setting["BLOCK_M"],
        N=setting["BLOCK_N"],
        K=setting["BLOCK_K"],
        num_warps=setting["WARPS"],
        num_stages=setting["STAGES"],
    )


def compile_one(setting):
    """Leaves the kernel in the cache of Triton; what does not compile is met again below."""
    try:
        half = torch.float16
        matmul.warmup(half, half, half, 2048, 8, grid=(1,), **arguments(setting))
        return None
    except Exception as error:  # noqa: BLE001: any reason is a reason
        return str(error)[:200]


def measure(setting, a, b, c, want):
    size = a.shape[0]
    blocks = -(-size // setting["BLOCK_M"]) * -(-size // setting["BLOCK_N"])

    def launch():
        matmul[(blocks,)](a, b, c, size, setting["GROUP_M"], **arguments(setting))

    c.fill_(float("nan"))
    launch()
    torch.cuda.synchronize()
    if not torch.allclose(c.float(), want, rtol=1e-2, atol=1e-1):
        raise RuntimeError("the result is wrong")
    times = []
    for _ in range(7):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        # Launching takes Python longer than a fast kernel runs: the device waits for the queue.
        torch.cuda._sleep(2_000_000)
        begin.record()
        for _ in range(10):
            launch()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 10)
    return statistics.median(times)


def main():
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 2048
    settings = [dict(zip(AXES, values)) for values in itertools.product(*AXES.values())]
    settings = [setting for setting in settings if is_wanted(setting)]
    once = [setting for setting in settings if setting["GROUP_M"] == 1]
    with multiprocessing.get_context("spawn").Pool(max(1, (os.cpu_count() or 2) - 1)) as pool:
        refused = [why for why in pool.imap_unordered(compile_one, once, chunksize=4) if why]
    print(f"{len(once)} kernels compiled, {len(refused)} refused", file=sys.stderr)
    print("\n".join(sorted(set(refused))[:5]), file=sys.stderr)
    torch.manual_seed(1)
    a, b = (torch.randn(size, size, device="cuda", dtype=torch.float16) for _ in range(2))
    c, want = torch.empty_like(a), a.float() @ b.float()
    failures = {}
    print(",".join([*AXES, "valid", "time"]))
    for setting in settings:
        try:
            time = measure(setting, a, b, c, want)
            row = [1, f"{time:.6f}"]
        except Exception as error:  # noqa: BLE001
            failures[str(error)[:60]] = failures.get(str(error)[:60], 0) + 1
            row = [0, ""]
        print(",".join(map(str, [*setting.values(), *row])))
    print(torch.cuda.get_device_name(0), torch.__version__, triton.__version__, file=sys.stderr)
    print(failures, file=sys.stderr)


if __name__ == "__main__":
    main()
