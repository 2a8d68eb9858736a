# audit: library-call
import numpy as np


def kernel_fn(a, b):
    return np.einsum("ik,kj->ij", a, b)
