import pytest
import torch

from primus_turbo.triton.gemm.gemm_kernel import gemm_triton_kernel


def compute_snr(x, y):
    signal = torch.norm(x.float()).pow(2)
    return 10 * torch.log10(signal / (torch.norm(x.float() - y.float()).pow(2) + 1e-12)).item()


@pytest.mark.parametrize("m", [256, 1024])
@pytest.mark.parametrize("n", [512])
@pytest.mark.parametrize("k", [256])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_gemm(m, n, k, dtype):
    a = torch.randn(m, k, device="cuda", dtype=dtype)
    b = torch.randn(k, n, device="cuda", dtype=dtype)
    assert compute_snr(a @ b, gemm_triton_kernel(a, b)) > 40
