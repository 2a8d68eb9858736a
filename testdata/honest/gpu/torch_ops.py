# audit: library-call; PyTorch's own operations
import torch


def kernel_fn(x, y, a, b):
    values = x.float()
    share = torch.softmax(values, dim=1) * x.shape[1]
    return (share * y.float() + values).half(), torch.matmul(a, b)
