import torch


def reference_fn(x):
    return torch.nn.functional.layer_norm(x, x.shape[1:])
