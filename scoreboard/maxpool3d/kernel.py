"""Calls the kernel of kernel.cu."""

import ctypes
import pathlib

import torch

LIBRARY = ctypes.CDLL(str(pathlib.Path(__file__).parent / "build" / "kernel.so"))


def at(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


def kernel_fn(x):
    b, c = x.shape[:2]
    y = torch.empty((b, c, 62, 62, 62), device=x.device, dtype=x.dtype)
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    code = LIBRARY.maxpool3d(b * c, at(x), at(y), stream)
    if code != 0:
        raise RuntimeError(f"CUDA error {code}")
    return y
