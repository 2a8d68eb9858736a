# audit: background
import torch

side = torch.cuda.Stream()


def kernel_fn(a):
    with torch.cuda.stream(side):
        return a * 2
