import time

import numpy as np

from stencil import heat_step


def measure(n, repeats=5):
    u = np.random.default_rng(0).random((n, n))
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        heat_step(u)
        best = min(best, time.perf_counter() - start)
    return best


if __name__ == "__main__":
    for n in (32, 96):
        print(f"{n}x{n}: {measure(n) * 1e3:.3f} ms")
