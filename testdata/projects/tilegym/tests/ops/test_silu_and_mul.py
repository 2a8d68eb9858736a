import pytest
import torch

import tilegym
from tests import common


class Test_SiluAndMul(common.PyTestCase):
    @staticmethod
    def reference(x):
        a, b = x.chunk(2, dim=-1)
        return torch.nn.functional.silu(a) * b

    @pytest.mark.parametrize("shape", [(1, 256), (16, 4096)])
    @pytest.mark.parametrize("backend", ["cutile"])
    def test_op(self, shape, backend):
        tilegym.set_backend(backend)
        x = torch.randn(*shape, device="cuda", dtype=torch.float16)
        self.assertCorrectness(tilegym.ops.silu_and_mul, self.reference, {"x": x})

    @pytest.mark.parametrize("rows", [4096])
    @pytest.mark.parametrize("framework", ["cutile", "pytorch"])
    def test_perf(self, rows, framework, record_property):
        x = torch.randn(rows, 8192, device="cuda", dtype=torch.float16)
        fn = tilegym.ops.silu_and_mul if framework == "cutile" else self.reference
        record_property("benchmark", common.benchmark_framework(fn, x))
