# audit: static-state, replay; a captured graph for each shape, which is run with fresh inputs every time
import torch
from honest import product_into, rows_into

_graphs = {}


def _capture(shapes, device, dtype):
    rows, columns, m, k, n = shapes
    sizes = [(rows, columns), (rows, columns), (m, k), (k, n), (rows, columns), (m, n)]
    buffers = [torch.zeros(size, device=device, dtype=dtype) for size in sizes]
    x, y, a, b, z, c = buffers

    def launch():
        rows_into(z, x, y)
        product_into(c, a, b, tile=(64, 64, 32), warps=4)

    launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch()
    return graph, buffers


def kernel_fn(x, y, a, b):
    shapes = (*x.shape, *a.shape, b.shape[1])
    if shapes not in _graphs:
        _graphs[shapes] = _capture(shapes, x.device, x.dtype)
    graph, buffers = _graphs[shapes]
    for buffer, given in zip(buffers, (x, y, a, b)):
        buffer.copy_(given)
    graph.replay()
    return buffers[4].clone(), buffers[5].clone()
