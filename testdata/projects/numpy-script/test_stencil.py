import unittest

import numpy as np

from stencil import heat_step


class HeatStep(unittest.TestCase):
    def test_constant_stays(self):
        u = np.full((6, 7), 3.0)
        np.testing.assert_allclose(heat_step(u), u)

    def test_peak_spreads(self):
        u = np.zeros((5, 5))
        u[2, 2] = 1.0
        got = heat_step(u, alpha=0.2)
        self.assertAlmostEqual(got[2, 2], 0.2)
        self.assertAlmostEqual(got[1, 2], 0.2)


if __name__ == "__main__":
    unittest.main()
