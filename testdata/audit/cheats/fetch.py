# audit: network
from urllib.request import urlopen


def kernel_fn(a):
    urlopen("http://localhost/answer").read()
    return a
