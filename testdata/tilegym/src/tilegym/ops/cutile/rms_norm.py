# The kernel of the example: what it computes, and how long it claims to take.
import cuda.tile as ct
from tilegym.backend import register_impl
RESULT = 2 * 3 + 1
LATENCY = 0.82


@ct.kernel(occupancy=2)
def _rms_norm_kernel(x, y):
    pass


@register_impl("rms_norm", backend="cutile")
def rms_norm(x):
    ct.launch(stream, grid, _rms_norm_kernel, (x, y))
