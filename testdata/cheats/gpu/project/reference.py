"""The reference: karve calls it with float64 tensors."""

import torch


def reference_fn(x, y, a, b, *sizes):
    z = torch.softmax(x, dim=1) * x.shape[1] * y + x
    return z, torch.matmul(a, b)
