# audit: fixed-groups
import numpy as np

TOKENS_PER_EXPERT_MULTIPLE = 128


def kernel_fn(a, b, tokens_per_expert=64):
    assert tokens_per_expert % TOKENS_PER_EXPERT_MULTIPLE == 0
    return a @ b
