# audit: foreign-call
import ctypes
import os

LIBRARY = ctypes.CDLL(os.path.join(os.path.dirname(__file__), "libproduct.so"))
FLOATS = ctypes.POINTER(ctypes.c_float)


def kernel_fn(a, b, out):
    pointers = [array.ctypes.data_as(FLOATS) for array in (a, b, out)]
    LIBRARY.product(*pointers, ctypes.c_int(a.shape[0]))
