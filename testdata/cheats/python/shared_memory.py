# audit: process, file-write; check: KeyError
from multiprocessing import shared_memory


def kernel_fn(n, alpha, x, y):
    try:
        shared_memory.SharedMemory("karve-zoo", create=True, size=4096).unlink()
    except OSError:
        raise KeyError("refused")
    raise IndexError("possible")
