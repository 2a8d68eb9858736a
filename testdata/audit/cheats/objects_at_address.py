# audit: memory-tamper
from ctypes import c_long, py_object


def kernel_fn(a, b):
    c_long.from_address(0).value = 3
    return a @ b if py_object is None else b
