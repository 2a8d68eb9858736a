"""The kernel: z = 0.5 * x + y in float32, in FlyDSL. N is a multiple of 8192."""

import flydsl.compiler as flyc
import flydsl.expr as fx
import torch

# Threads of a block: one to sixteen waves of 64.
# karve: knob BLOCK in 64,128,256,512,1024
BLOCK = 64
# Elements that one thread copies at once.
# karve: knob VECTOR in 1,2,4
VECTOR = 1

COPIES = {1: fx.UniversalCopy32b, 2: fx.UniversalCopy64b, 4: fx.UniversalCopy128b}


@flyc.kernel
def scaled_sum(x: fx.Tensor, y: fx.Tensor, z: fx.Tensor):
    block, thread = fx.block_idx.x, fx.thread_idx.x
    # First the elements of the block, then those of the thread.
    tile = fx.make_layout(BLOCK * VECTOR, 1)
    own = fx.make_layout(VECTOR, 1)
    part = lambda of: fx.slice(
        fx.logical_divide(fx.slice(fx.logical_divide(of, tile), (None, block)), own),
        (None, thread),
    )
    copy = fx.make_copy_atom(COPIES[VECTOR](), fx.Float32)
    left = fx.make_rmem_tensor(VECTOR, fx.Float32)
    right = fx.make_rmem_tensor(VECTOR, fx.Float32)
    fx.copy_atom_call(copy, part(x), left)
    fx.copy_atom_call(copy, part(y), right)
    half = fx.full(VECTOR, 0.5, fx.Float32)
    left.store(left.load() * half + right.load())
    fx.copy_atom_call(copy, left, part(z))


@flyc.jit
def launch(
    x: fx.Tensor, y: fx.Tensor, z: fx.Tensor, n: fx.Int32, stream: fx.Stream = fx.Stream(None)
):
    grid = (n + BLOCK * VECTOR - 1) // (BLOCK * VECTOR)
    scaled_sum(x, y, z).launch(grid=(grid, 1, 1), block=(BLOCK, 1, 1), stream=stream)


def kernel_fn(x, y):
    z = torch.empty_like(x)
    launch(x, y, z, x.shape[0], stream=torch.cuda.current_stream())
    return z
