#!/bin/sh
# Kernels that fail on a GPU, each in its own way: every one must end with a name for it, and karve
# must go on. testing/gpu.sh runs it.
#
#   testing/gpu-faults.sh KARVE DIR [PYTHON]
set -eu
karve=$(readlink -f "${1:?"usage: testing/gpu-faults.sh KARVE DIR [PYTHON]"}")
dir=${2:?"usage: testing/gpu-faults.sh KARVE DIR [PYTHON]"}
python=${3:-python3}
export GIT_AUTHOR_NAME=karve GIT_AUTHOR_EMAIL=karve@localhost
export GIT_COMMITTER_NAME=karve GIT_COMMITTER_EMAIL=karve@localhost
mkdir -p "$dir"

# A project whose kernel does something first, and what its gate must say.
fault() { # name, statement, words
    mkdir -p "$dir/$1"
    "$karve" -C "$dir/$1" new --template triton > "$dir/$1/new.txt"
    project="$dir/$1/triton"
    sed -i "0,/^python = /s|^python = |interpreter = \"$(command -v "$python")\"\npython = |" "$project/karve.toml"
    sed -i 's|^\[limits\]$|[limits]\ncommand_s = 15|' "$project/karve.toml"
    "$python" - "$project/kernel.py" "$2" <<'PYTHON'
import re, sys
path, statement = sys.argv[1:]
text = open(path).read()
head = re.search(r"def kernel_fn\([^)]*\)[^:]*:\n", text)
poke = "@triton.jit\ndef poke(at):\n    tl.store(at + (1 << 40), 0.0)\n\n\n"
text = text[: head.start()] + poke + head[0] + "    " + statement + "\n" + text[head.end() :]
open(path, "w").write(text)
PYTHON
    git -C "$project" commit -qam "A fault"
    "$karve" -C "$project" check > "$dir/$1/check.txt" 2>&1 || true
    gate=$(sed -n 's/^gate *//p' "$dir/$1/check.txt" | head -1)
    case $gate in *"$3"*) ok="" ;; *) ok="WRONG " ;; esac
    echo "$ok$1: $gate" > "$dir/$1/result.txt"
}

fault illegal_access 'poke[(1,)](a)' "illegal memory access" &
fault assertion 'torch.zeros(9, device="cuda")[torch.tensor([99], device="cuda")]' "failed assertion" &
fault memory 'torch.empty(1 << 42, dtype=torch.uint8, device="cuda")' "out of memory" &
fault hang 'torch.cuda._sleep(10**14)' "timed out" &
fault exit 'import os; os._exit(3)' "exited" &
fault crash 'import ctypes; ctypes.string_at(8)' "signal 11" &
wait
cat "$dir"/*/result.txt
! grep -q "^WRONG" "$dir"/*/result.txt
