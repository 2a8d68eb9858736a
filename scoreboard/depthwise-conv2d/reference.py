import torch


def reference_fn(x, w):
    return torch.nn.functional.conv2d(x, w, groups=x.shape[1])
