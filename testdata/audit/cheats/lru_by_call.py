# audit: tensor-memo
from functools import lru_cache


@lru_cache(maxsize=None)
def doubled(x):
    return x * 2


def kernel_fn(a, b):
    return doubled(a) @ b
