# audit: timer
import time


def kernel_fn(a):
    tick = getattr(time, "perf_counter")
    return a if tick() else a
