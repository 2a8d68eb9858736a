import torch


def reference_fn(x):
    return torch.softmax(x, dim=1)
