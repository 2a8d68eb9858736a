# audit: weight-cache
import torch

_packed = {}


def kernel_fn(x, weight):
    key = (id(weight), weight._version, weight.shape)
    if key not in _packed:
        _packed.clear()
        _packed[key] = weight.t().contiguous()
    return torch.relu(x) * _packed[key].sum()
