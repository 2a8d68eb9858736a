import numpy as np


def pairwise_distances(points):
    """The Euclidean distance of every pair of points, as a matrix."""
    n = len(points)
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            difference = points[i] - points[j]
            out[i, j] = np.sqrt(np.sum(difference * difference))
    return out
