# audit: timer
from time import perf_counter_ns as now


def kernel_fn(a):
    return a if now() % 2 else a * 1
