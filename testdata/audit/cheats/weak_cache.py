# audit: weak-reference
import weakref

_held = weakref.WeakKeyDictionary()


def kernel_fn(x):
    if x not in _held:
        _held[x] = x * 2
    return _held[x]
