"""Calls the kernel of kernel.cu."""

import ctypes
import pathlib

import torch

LIBRARY = ctypes.CDLL(str(pathlib.Path(__file__).parent / "build" / "kernel.so"))


def at(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


def kernel_fn(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    code = LIBRARY.cumsum(rows, columns, at(x), at(y), stream)
    if code != 0:
        raise RuntimeError(f"CUDA error {code}")
    return y
