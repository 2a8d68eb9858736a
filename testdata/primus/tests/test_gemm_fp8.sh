. ./primus_turbo/triton/gemm/gemm_fp8_kernel.py
[ "$RESULT" = 7 ] || { echo mismatch >&2; exit 1; }
