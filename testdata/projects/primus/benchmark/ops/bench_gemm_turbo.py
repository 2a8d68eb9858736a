import argparse

import pandas as pd
import torch
import torch.utils.benchmark as benchmark
from tabulate import tabulate

from primus_turbo.triton.gemm.gemm_kernel import gemm_triton_kernel

SHAPES = {"Llama-2-7B": [(4096, 12288, 4096), (4096, 4096, 4096)], "Qwen2-7B": [(4096, 4608, 3584)]}


def profile_gemm(M, N, K, dtype):
    a = torch.randn(M, K, device="cuda", dtype=dtype)
    b = torch.randn(K, N, device="cuda", dtype=dtype)
    ok = torch.allclose(gemm_triton_kernel(a, b), a @ b, rtol=1e-2, atol=1e-2)
    timer = benchmark.Timer(stmt="fn(a, b)", globals={"fn": gemm_triton_kernel, "a": a, "b": b})
    ms = timer.timeit(100).mean * 1e3
    return ms, 2 * M * N * K / (ms * 1e-3) / 1e12, ok


def benchmark_gemm_turbo(output_csv):
    rows = []
    for model, shapes in SHAPES.items():
        for mbs in (1, 2):
            for M, N, K in shapes:
                ms, tflops, ok = profile_gemm(M * mbs, N, K, torch.bfloat16)
                rows.append(
                    {
                        "Case": model,
                        "MBS": mbs,
                        "M": M * mbs,
                        "N": N,
                        "K": K,
                        "Check": "PASS" if ok else "FAIL",
                        "Forward Time (ms)": f"{ms:.2f}",
                        "Forward TFLOPS": f"{tflops:.2f}",
                    }
                )
    table = pd.DataFrame(rows)
    print(tabulate(table, headers="keys", tablefmt="grid", showindex=False))
    table.to_csv(output_csv, index=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Benchmark GEMM")
    parser.add_argument("--output", "-o", type=str, default="gemm_turbo.csv")
    args = parser.parse_args()
    benchmark_gemm_turbo(args.output)
