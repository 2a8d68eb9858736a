import torch


def reference_fn(x):
    return torch.nn.functional.max_pool3d(x, kernel_size=3, stride=2, padding=1, dilation=3)
