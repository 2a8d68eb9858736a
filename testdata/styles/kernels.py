# Honest kernels in Python, one section each: z = x * y and y += alpha * x.
# A section names its style, and what the audit reports although it is honest.

# style: vectorized
import numpy as np


def kernel_fn(n, alpha, x, y):
    z = x * y
    y += np.float32(alpha) * x
    return z


# style: out arguments
import numpy as np


def kernel_fn(n, alpha, x, y):
    z = np.empty_like(x)
    np.multiply(x, y, out=z)
    np.add(y, np.float32(alpha) * x, out=y)
    return z


# style: a buffer that is kept
import numpy as np

_buffer = np.empty(0, dtype=np.float32)


def kernel_fn(n, alpha, x, y):
    global _buffer
    if _buffer.size < x.size:
        _buffer = np.empty(x.size, dtype=np.float32)
    part = _buffer[: x.size]
    np.multiply(x, np.float32(alpha), out=part)
    z = x * y
    y += part
    return z


# style: a table at the first use
import numpy as np

_signs = None


def kernel_fn(n, alpha, x, y):
    global _signs
    if _signs is None:
        _signs = np.ones(2, dtype=np.float32)
    z = x * y * _signs[1]
    y += np.float32(alpha) * x
    return z


# style: blocks in a generator
import numpy as np


def _blocks(n, width=256):
    for start in range(0, n, width):
        yield slice(start, min(n, start + width))


def kernel_fn(n, alpha, x, y):
    z = np.empty_like(x)
    for part in _blocks(n):
        z[part] = x[part] * y[part]
        y[part] += np.float32(alpha) * x[part]
    return z


# style: a data class for the plan
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Plan:
    width: int
    scale: float


def kernel_fn(n, alpha, x, y):
    plan = Plan(width=min(n, 512), scale=alpha)
    z = np.empty_like(x)
    for start in range(0, n, plan.width):
        end = start + plan.width
        z[start:end] = x[start:end] * y[start:end]
    y += np.float32(plan.scale) * x
    return z


# style: strides
import numpy as np
from numpy.lib.stride_tricks import as_strided


def kernel_fn(n, alpha, x, y):
    whole = n // 4 * 4
    shape, strides = (whole // 4, 4), (4 * x.itemsize, x.itemsize)
    z = np.empty_like(x)
    z[:whole] = (as_strided(x, shape, strides) * as_strided(y, shape, strides)).reshape(-1)
    z[whole:] = x[whole:] * y[whole:]
    y += np.float32(alpha) * x
    return z


# style: a plan by shape, memoized; audit: value-memo
from functools import lru_cache

import numpy as np


@lru_cache(maxsize=64)
def _cuts(n: int, width: int):
    return tuple(range(0, n, width)) + (n,)


def kernel_fn(n, alpha, x, y):
    cuts = _cuts(n, 300)
    z = np.empty_like(x)
    for start, end in zip(cuts, cuts[1:]):
        np.multiply(x[start:end], y[start:end], out=z[start:end])
    y += np.float32(alpha) * x
    return z


# style: prepared input by its whole content; audit: static-state
import numpy as np

_copy = np.empty(0, dtype=np.float32)
_scaled = np.empty(0, dtype=np.float32)


def kernel_fn(n, alpha, x, y):
    global _copy, _scaled
    if not np.array_equal(_copy, x):
        _copy = x.copy()
        _scaled = np.float32(alpha) * x
    z = x * y
    y += _scaled
    return z


# style: einsum; audit: library-call
import numpy as np


def kernel_fn(n, alpha, x, y):
    z = np.einsum("i,i->i", x, y)
    y += np.float32(alpha) * x
    return z
