# audit: frames
def kernel_fn(a, b):
    try:
        raise ValueError
    except ValueError as error:
        caller = error.__traceback__.tb_frame
    return a @ b if caller is None else b
