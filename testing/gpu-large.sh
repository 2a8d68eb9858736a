#!/bin/sh
# Kernels on very large tensors, on a machine with a GPU, PyTorch, Triton and git: a norm of 7.5 GB
# in one tensor, and sums over a tensor that has SHARE percent (60) of the memory of the device.
#
#   testing/gpu-large.sh KARVE [DIR]
#
# Each is checked, compared with a version of itself that does all of it twice, and has a campaign of
# two rounds; one that is too large must end with an error that names the memory. Takes about seven
# minutes, at most LIMIT seconds (120) for each step. KERNELS names some of "norm sums beyond", STEPS
# some of "check bench run"; by default all.
# DIR must not lie in a git repository: each project becomes one.
set -eu
karve=$(readlink -f "${1:?"usage: testing/gpu-large.sh KARVE [DIR]"}")
dir=${2:-$(mktemp -d)}
python=$(command -v "${PYTHON:-python3}")
share=${SHARE:-60}
limit=${LIMIT:-120}
kernels=" ${KERNELS:-norm sums beyond} "
steps=" ${STEPS:-check bench run} "
export GIT_AUTHOR_NAME=karve GIT_AUTHOR_EMAIL=karve@localhost
export GIT_COMMITTER_NAME=karve GIT_COMMITTER_EMAIL=karve@localhost
export KARVE_LEASE_DIR="$dir/leases"
mkdir -p "$dir"
failed=""

# Rows of 65,536 numbers of two bytes that have so many percent of all memory.
rows_of() { # percent
    "$python" -c "import torch
print(torch.cuda.get_device_properties(0).total_memory * $1 // 100 // 131072)"
}

project() { # name, arguments, case, reduction, reference
    mkdir -p "$dir/$1"
    cat > "$dir/$1/karve.toml" <<TOML
[target]
op = "$1"
backend = "triton"
device = "gpu"

[sources]
editable = ["kernel.py"]

[contract]
python = "kernel.py"
interpreter = "$python"
device = "cuda"
reduction = "$4"
args = [
$2
]

[contract.reference]
python = "reference.py"
precision = "native"

[cases]
list = ["$3"]

[limits]
rounds = 2
TOML
    printf 'import torch\n\n\ndef reference_fn(x):\n    return %s\n' "$5" > "$dir/$1/reference.py"
    git -C "$dir/$1" init -q
}

commit() { # name, times that the input is read
    sed "s/READS = 1/READS = $2/" "$dir/$1.py" > "$dir/$1/kernel.py"
    git -C "$dir/$1" add -A
    git -C "$dir/$1" commit -qm "Read it $2 times"
}

# What karve says in a project, at most so many lines of it.
say() { # name, words of karve
    name=$1
    shift
    started=$(date +%s)
    rc=0
    timeout "$limit" "$karve" -C "$dir/$name" "$@" > "$dir/$name-$1.txt" 2>&1 || rc=$?
    echo "== $name: karve $* ended with $rc after $(($(date +%s) - started)) s"
    tail -n 14 "$dir/$name-$1.txt"
}

cat > "$dir/norm.py" <<'PYTHON'
import torch
import triton
import triton.language as tl

# karve: knob PIXELS in 64,128,256
PIXELS = 128
READS = 1


@triton.jit
def norm(x, y, C, P, CHANNELS: tl.constexpr, PIXELS: tl.constexpr):
    image = tl.program_id(1).to(tl.int64)
    p = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    c = tl.arange(0, CHANNELS)
    at = image * C * P + c[:, None].to(tl.int64) * P + p[None, :]
    inside = (c[:, None] < C) & (p[None, :] < P)
    v = tl.load(x + at, mask=inside, other=0.0)
    scale = tl.rsqrt(tl.sum(v * v, axis=0) / C + 1e-5)
    tl.store(y + at, v * scale[None, :], mask=inside)


def kernel_fn(x):
    n, c, p = x.shape
    y = torch.empty_like(x)
    channels = triton.next_power_of_2(c)
    for _ in range(READS):
        norm[(triton.cdiv(p, PIXELS), n)](x, y, c, p, channels, PIXELS)
    return y
PYTHON
cat > "$dir/sums.py" <<'PYTHON'
import torch
import triton
import triton.language as tl

# karve: knob BLOCK in 1024,2048,4096
BLOCK = 2048
READS = 1


@triton.jit
def sums(x, y, C, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, C, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * C + at, mask=at < C, other=0.0).to(tl.float32)
    tl.store(y + row, tl.sum(total, axis=0))


def kernel_fn(x):
    y = torch.empty(x.shape[0], device=x.device, dtype=torch.float32)
    for _ in range(READS):
        sums[(x.shape[0],)](x, y, x.shape[1], BLOCK)
    return y
PYTHON

project norm '  { name = "x", kind = "input", dtype = "f32", shape = ["N", "C", "P"] },
  { name = "y", kind = "output", dtype = "f32", shape = ["N", "C", "P"] },' \
    "N=112,C=64,P=262144" "C" "x * torch.rsqrt(x.square().mean(1, keepdim=True) + 1e-5)"
arguments='  { name = "x", kind = "input", dtype = "f16", shape = ["R", "C"] },
  { name = "y", kind = "output", dtype = "f32", shape = ["R"] },'
project sums "$arguments" "R=$(rows_of "$share"),C=65536" "C" "x.sum(1, dtype=torch.float32)"
cp "$dir/sums.py" "$dir/beyond.py"
# In float64 it is four times as large.
project beyond "$arguments" "R=$(rows_of 22),C=65536" "C" "x.sum(1)"
sed -i '/^precision/d' "$dir/beyond/karve.toml"
named() { # word, list
    case $2 in *" $1 "*) true ;; *) false ;; esac
}

for name in norm sums; do
    named "$name" "$kernels" || continue
    commit "$name" 2
    commit "$name" 1
    grep '^list' "$dir/$name/karve.toml"
    if named check "$steps"; then
        say "$name" check
        grep -q "^gate *passed" "$dir/$name-check.txt" || failed="$failed $name-check"
    fi
    if named bench "$steps"; then
        say "$name" bench HEAD~1 HEAD
        grep -q "^[NR]=.* faster " "$dir/$name-bench.txt" || failed="$failed $name-bench"
    fi
    if named run "$steps"; then
        say "$name" run --yes --rounds 2
        grep -q "^final\|^round *1" "$dir/$name-run.txt" || failed="$failed $name-run"
    fi
done
if named beyond "$kernels"; then
    commit beyond 1
    say beyond check
    grep -q "memory of the GPU is not enough" "$dir/beyond-check.txt" || failed="$failed beyond"
fi
echo "outputs are in $dir"
test -z "$failed" || { echo "failed:$failed"; exit 1; }
