import torch


def reference_fn(x, mask):
    return torch.cumsum(x * mask, dim=1)
