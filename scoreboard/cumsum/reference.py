import torch


def reference_fn(x):
    return torch.cumsum(x, dim=1)
