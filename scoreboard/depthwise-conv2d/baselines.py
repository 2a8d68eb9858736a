"""More baselines: the same with channels last, converted beforehand."""

import torch


def channels_last(x, w):
    return torch.nn.functional.conv2d(x, w, groups=x.shape[1])


def inputs_of_channels_last(x, w):
    return x.contiguous(memory_format=torch.channels_last), w
