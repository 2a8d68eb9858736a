#!/bin/sh
# Runs the templates for a GPU on a machine that has one: PyTorch, Triton, nvcc and git, no Rust.
#
#   cargo build --release -p karve
#   testing/gpu.sh target/release/karve [DIR] [ROUNDS]
#
# Copy karve, this file and gpu-figures.py there if that is another machine, with a C library that is
# as new as here. A karve that is linked statically cannot load the driver.
# Each campaign may take LIMIT seconds, 180 by default. Afterwards gpu-figures.py shows where its time
# went. Projects and campaigns lie in DIR afterwards, for "karve report" and "karve log". DIR must not lie
# in a git repository: each project becomes one.
set -eu
karve=$(readlink -f "${1:?"usage: testing/gpu.sh KARVE [DIR] [ROUNDS]"}")
dir=${2:-$(mktemp -d)}
rounds=${3:-12}
limit=${LIMIT:-180}
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
    project="$dir/$template"
    rm -rf "${project:?}"
    "$karve" -C "$dir" new --template "$template"
    if [ "$template" = triton ]; then
        # Only the first: the reference has no interpreter of its own.
        sed -i "0,/^python = /s|^python = |interpreter = \"$(command -v "$python")\"\npython = |" \
            "$project/karve.toml"
        git -C "$project" commit -qam "The Python of this machine"
    fi
    started=$(date +%s)
    timeout "$limit" "$karve" -C "$project" run --yes --rounds "$rounds" || failed="$failed $template"
    echo "== $template took $(($(date +%s) - started)) s"
    "$python" "$(dirname "$0")/gpu-figures.py" "$project"/.karve/*/events.jsonl
    # A comment is not faster.
    kernel=$(git -C "$project" ls-files "kernel.*")
    case $kernel in *.py) comment="# nothing" ;; *) comment="// nothing" ;; esac
    echo "$comment" >> "$project/$kernel"
    git -C "$project" commit -qam "Nothing"
    echo "a no-op:"
    "$karve" -C "$project" bench HEAD~1 HEAD | grep -E "^(no difference|B is|ratio)" || failed="$failed no-op"
done
echo "projects are in $dir"
test -z "$failed" || { echo "failed:$failed"; exit 1; }
