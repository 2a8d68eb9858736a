import numpy as np
import pytest

from neighbors import pairwise_distances


def test_unit_square():
    square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    got = pairwise_distances(square)
    assert got[0, 1] == pytest.approx(1.0)
    assert got[0, 2] == pytest.approx(2.0**0.5)
    assert np.allclose(np.diag(got), 0.0)


def test_is_symmetric():
    points = np.random.default_rng(0).normal(size=(20, 3))
    got = pairwise_distances(points)
    assert np.allclose(got, got.T)


@pytest.mark.parametrize("n", [16, 64])
def test_speed(benchmark, n):
    points = np.random.default_rng(1).normal(size=(n, 3))
    benchmark(pairwise_distances, points)
