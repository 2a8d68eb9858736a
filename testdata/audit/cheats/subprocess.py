# audit: process
import subprocess


def kernel_fn(a):
    subprocess.run(["true"])
    return a
