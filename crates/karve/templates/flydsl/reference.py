"""The reference: PyTorch's own arithmetic. It is called with float64 tensors."""


def reference_fn(x, y):
    return 0.5 * x + y
