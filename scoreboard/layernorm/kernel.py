"""Calls the kernel of kernel.cu."""

import ctypes
import pathlib

import torch

LIBRARY = ctypes.CDLL(str(pathlib.Path(__file__).parent / "build" / "kernel.so"))


def at(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


def kernel_fn(x):
    rows = x.shape[0]
    y = torch.empty_like(x)
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    code = LIBRARY.layernorm(rows, x.numel() // rows, ctypes.c_float(1e-5), at(x), at(y), stream)
    if code != 0:
        raise RuntimeError(f"CUDA error {code}")
    return y
