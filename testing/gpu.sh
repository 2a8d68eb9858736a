#!/bin/sh
# Runs the templates for a GPU on a machine that has one: PyTorch, Triton, nvcc and git, no Rust.
#
#   cargo build --release -p karve
#   testing/gpu.sh target/release/karve [DIR] [ROUNDS]
#
# Copy karve and this file there if that is another machine; a karve that is linked statically runs
# anywhere: RUSTFLAGS="-C target-feature=+crt-static" cargo build --release -p karve --locked \
#   --target x86_64-unknown-linux-gnu
# Projects and campaigns lie in DIR afterwards, for "karve report" and "karve log". DIR must not lie
# in a git repository: each project becomes one.
set -eu
karve=$(readlink -f "${1:?"usage: testing/gpu.sh KARVE [DIR] [ROUNDS]"}")
dir=${2:-$(mktemp -d)}
rounds=${3:-4}
python=${PYTHON:-python3}
export GIT_AUTHOR_NAME=karve GIT_AUTHOR_EMAIL=karve@localhost
export GIT_COMMITTER_NAME=karve GIT_COMMITTER_EMAIL=karve@localhost
export KARVE_LEASE_DIR="$dir/leases"
mkdir -p "$dir"
"$python" - <<'PYTHON'
import sys, time
start = time.time()
import numpy, torch, triton
print("python", sys.version.split()[0], "numpy", numpy.__version__, "torch", torch.__version__)
print("triton", triton.__version__, "on", torch.cuda.get_device_name(0))
print("importing all three took %.1f s" % (time.time() - start))
PYTHON
failed=""
for template in triton cuda; do
    echo "== $template"
    rm -rf "${dir:?}/$template"
    "$karve" -C "$dir" new --template "$template"
    sed -i "s|^python = |interpreter = \"$(command -v "$python")\"\npython = |" \
        "$dir/$template/karve.toml"
    # Only the first: the reference has no interpreter of its own.
    sed -i '/^\[contract.reference\]/,$ { /^interpreter = /d }' "$dir/$template/karve.toml"
    git -C "$dir/$template" commit -qam "The Python of this machine"
    started=$(date +%s)
    "$karve" -C "$dir/$template" run --yes --rounds "$rounds" || failed="$failed $template"
    echo "== $template took $(($(date +%s) - started)) s"
done
echo "projects are in $dir"
test -z "$failed" || { echo "failed:$failed"; exit 1; }
