"""The kernel: c = a @ b in float32, in the CuTe DSL. karve calls kernel_fn and checks what it returns.

A block has 16 by 16 threads and computes a tile of c. It copies a strip of a and a strip of b to
shared memory, and each thread adds to its ROWS by COLUMNS elements, which stay in registers.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import make_ptr

# Elements of c that one thread computes: ROWS * COLUMNS.
# karve: knob ROWS in 1,2,4,8
ROWS = 1
# karve: knob COLUMNS in 1,2,4,8
COLUMNS = 1
# Terms of each sum that are in shared memory at a time.
# karve: knob TILE_K in 8,16,32
TILE_K = 8
# Unused elements after each row of the strip of a, so that rows start in different banks.
# karve: knob PAD in 0,1,4
PAD = 0

SIDE = 16
THREADS = SIDE * SIDE
TILE_M = SIDE * ROWS
TILE_N = SIDE * COLUMNS


@cute.kernel
def product(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    thread = cute.arch.thread_idx()[0]
    tile_n, tile_m = cute.arch.block_idx()[:2]
    x, y = thread % SIDE, thread // SIDE
    m, k = a.shape
    n = b.shape[1]

    shared = cutlass.utils.SmemAllocator()
    strip_a = cute.make_layout((TILE_M, TILE_K), stride=(TILE_K + PAD, 1))
    strip_b = cute.make_layout((TILE_K, TILE_N), stride=(TILE_N, 1))
    left = shared.allocate_tensor(cutlass.Float32, strip_a, 16)
    right = shared.allocate_tensor(cutlass.Float32, strip_b, 16)
    sums = cute.make_rmem_tensor(cute.make_layout((ROWS, COLUMNS)), cutlass.Float32)
    sums.fill(0.0)
    own_a = cute.make_rmem_tensor(cute.make_layout(ROWS), cutlass.Float32)
    own_b = cute.make_rmem_tensor(cute.make_layout(COLUMNS), cutlass.Float32)

    for start in range(0, k, TILE_K):
        # Neighboring threads copy neighboring elements; beyond the end there are zeros.
        for i in cutlass.range_constexpr(cute.ceil_div(TILE_M * TILE_K, THREADS)):
            at = i * THREADS + thread
            if at < TILE_M * TILE_K:
                row, column = at // TILE_K, at % TILE_K
                value = cutlass.Float32(0.0)
                if tile_m * TILE_M + row < m and start + column < k:
                    value = a[tile_m * TILE_M + row, start + column]
                left[row, column] = value
        for i in cutlass.range_constexpr(cute.ceil_div(TILE_K * TILE_N, THREADS)):
            at = i * THREADS + thread
            if at < TILE_K * TILE_N:
                row, column = at // TILE_N, at % TILE_N
                value = cutlass.Float32(0.0)
                if start + row < k and tile_n * TILE_N + column < n:
                    value = b[start + row, tile_n * TILE_N + column]
                right[row, column] = value
        cute.arch.sync_threads()
        for term in cutlass.range(TILE_K, unroll_full=True):
            for i in cutlass.range_constexpr(ROWS):
                own_a[i] = left[y + i * SIDE, term]
            for j in cutlass.range_constexpr(COLUMNS):
                own_b[j] = right[term, x + j * SIDE]
            for i in cutlass.range_constexpr(ROWS):
                for j in cutlass.range_constexpr(COLUMNS):
                    sums[i, j] += own_a[i] * own_b[j]
        cute.arch.sync_threads()

    for i in cutlass.range_constexpr(ROWS):
        for j in cutlass.range_constexpr(COLUMNS):
            row = tile_m * TILE_M + y + i * SIDE
            column = tile_n * TILE_N + x + j * SIDE
            if row < m and column < n:
                c[row, column] = sums[i, j]


@cute.jit
def launch(
    a: cute.Pointer,
    b: cute.Pointer,
    c: cute.Pointer,
    m: cutlass.Int32,
    n: cutlass.Int32,
    k: cutlass.Int32,
    stream: cuda.CUstream,
):
    left = cute.make_tensor(a, cute.make_layout((m, k), stride=(k, 1)))
    right = cute.make_tensor(b, cute.make_layout((k, n), stride=(n, 1)))
    result = cute.make_tensor(c, cute.make_layout((m, n), stride=(n, 1)))
    product(left, right, result).launch(
        grid=(cute.ceil_div(n, TILE_N), cute.ceil_div(m, TILE_M), 1),
        block=(THREADS, 1, 1),
        stream=stream,
    )


def pointer(address):
    return make_ptr(cutlass.Float32, address, cute.AddressSpace.gmem, assumed_align=16)


# Compiling takes much longer than a call, so it happens once, for all shapes.
SOME = pointer(16)
SIZE = cutlass.Int32(0)
COMPILED = cute.compile(launch, SOME, SOME, SOME, SIZE, SIZE, SIZE, cuda.CUstream(0))


def kernel_fn(a, b):
    m, k = a.shape
    n = b.shape[1]
    c = torch.empty((m, n), device=a.device, dtype=a.dtype)
    stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
    places = [pointer(tensor.data_ptr()) for tensor in (a, b, c)]
    COMPILED(*places, m, n, k, stream)
    return c
