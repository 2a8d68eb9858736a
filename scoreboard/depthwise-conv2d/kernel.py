"""Calls the kernel of kernel.cu."""

import ctypes
import pathlib

import torch

LIBRARY = ctypes.CDLL(str(pathlib.Path(__file__).parent / "build" / "kernel.so"))


def at(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


def kernel_fn(x, w):
    b, c, h, width = x.shape
    y = torch.empty((b, c, h - 2, width - 2), device=x.device, dtype=x.dtype)
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    code = LIBRARY.depthwise_conv2d(b, c, h, width, at(x), at(w), at(y), stream)
    if code != 0:
        raise RuntimeError(f"CUDA error {code}")
    return y
