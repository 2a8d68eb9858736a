#!/bin/sh
# Profiles kernels whose limits are known on a GPU, and lets karve explain them.
#
#   KARVE=path testing/gpu-profile.sh [DIR]
#
# Needs nvcc and ncu; with PyTorch and Triton a Triton kernel is profiled, too. What ncu wrote, and what karve
# says of it, is left in DIR.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$(mktemp -d)}
karve=${KARVE:-karve}
mkdir -p "$out"
spent() { echo "== $1: $(($(date +%s) - started)) s"; }

started=$(date +%s)
nvcc -O3 -arch=native -Xptxas -v -o "$out/kernels" "$here/profile/kernels.cu" 2>"$out/ptxas.txt"
spent "build"
started=$(date +%s)
ncu --csv --page raw --print-units base --set full --clock-control none --log-file "$out/raw.csv" "$out/kernels"
spent "ncu, raw"
"$karve" profile "$out/raw.csv" >"$out/kernels.txt"
"$karve" profile "$out/raw.csv" --form hyper-mla >"$out/contract.md"
"$karve" profile "$out/ptxas.txt" >"$out/ptxas.out.txt"
grep -E '^(kernel|limit|cause|try|knows)' "$out/kernels.txt"

if python3 -c 'import triton' 2>/dev/null; then
    started=$(date +%s)
    ncu --csv --page raw --print-units base --set full --clock-control none --kernel-name softmax_rows \
        --launch-count 1 --launch-skip 3 --log-file "$out/triton.csv" python3 "$here/profile/softmax.py"
    spent "ncu, Triton"
    "$karve" profile "$out/triton.csv" >"$out/triton.txt"
    grep -E '^(kernel|limit|cause|try|knows)' "$out/triton.txt"
else
    echo "skipped: a Triton kernel: python3 has no triton"
fi
if command -v nsys >/dev/null 2>&1; then
    nsys profile --trace cuda --force-overwrite true --output "$out/nsys" "$out/kernels" >/dev/null 2>&1
    nsys export --type sqlite --force-overwrite true --output "$out/nsys.sqlite" "$out/nsys.nsys-rep" >/dev/null 2>&1
    "$karve" profile "$out/nsys.sqlite" | head -40
else
    echo "skipped: a timeline: nsys is not there"
fi
