# audit: frames
import sys


def kernel_fn(a, b):
    sys.monitoring.register_callback(0, 1, print)
    return a @ b
