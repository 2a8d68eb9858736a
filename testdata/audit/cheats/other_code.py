# audit: patching
def nothing(*_):
    return None


def kernel_fn(a, b):
    kernel_fn.helper.__code__ = nothing.__code__
    return a @ b
