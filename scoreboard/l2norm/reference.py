import torch


def reference_fn(x):
    return x / torch.norm(x, p=2, dim=1, keepdim=True)
