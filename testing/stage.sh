#!/bin/sh
# Makes the kernels of the stage: crates/os/src/gpu/stage.ptx from stage.cu. Needs clang 16 or later,
# and neither a GPU nor an SDK. "testing/stage.sh --check" says whether the file is up to date.
set -eu
cd "$(dirname "$0")/../crates/os/src/gpu"
clang=${CLANG:-clang-16}
made=$(mktemp)
trap 'rm -f "$made"' EXIT
"$clang" -x cuda --cuda-device-only --cuda-gpu-arch=sm_70 -nocudainc -nocudalib -O3 -S \
    -Xclang -target-feature -Xclang +ptx63 -o "$made" stage.cu
if [ "${1:-}" = --check ]; then
    cmp -s "$made" stage.ptx || { echo "stage.ptx is not made from stage.cu: run testing/stage.sh"; exit 1; } >&2
else
    cp "$made" stage.ptx
fi
