#!/bin/sh
# Runs the templates for a GPU on a machine that has one: PyTorch, Triton, nvcc and git, no Rust.
#
#   cargo build --release -p karve
#   testing/gpu.sh target/release/karve [DIR]
#
# Copy karve, this file, gpu-figures.py and gpu-faults.sh there if that is another machine, with a C
# library that is as new as here. A karve that is linked statically cannot load the driver.
# It takes less than 8 minutes: two campaigns of 12 rounds, at most LIMIT seconds each (240), equal and
# different kernels decided TIMES times (10), and faults; PARTS names some of "triton cuda same tuner
# gains small faults", by default all. The table at the end has the figures beside
# what they must be. Projects and campaigns lie in DIR afterwards, for "karve report" and "karve log".
# DIR must not lie in a git repository: each project becomes one. testing/gpu-zoo.py is the rest.
set -eu
karve=$(readlink -f "${1:?"usage: testing/gpu.sh KARVE [DIR]"}")
here=$(dirname "$(readlink -f "$0")")
dir=${2:-$(mktemp -d)}
limit=${LIMIT:-240}
times=${TIMES:-10}
python=${PYTHON:-python3}
parts=" ${PARTS:-triton cuda same tuner gains small faults} "
export GIT_AUTHOR_NAME=karve GIT_AUTHOR_EMAIL=karve@localhost
export GIT_COMMITTER_NAME=karve GIT_COMMITTER_EMAIL=karve@localhost
export KARVE_LEASE_DIR="$dir/leases"
mkdir -p "$dir"
table="$dir/table.txt"
: > "$table"
row() { printf '%-58s %-34s %s\n' "$1" "$2" "$3" >> "$table"; }
failed=""

plays() { case $parts in *" $1 "*) true ;; *) false ;; esac; }

new() { # template, name
    mkdir -p "$dir/new"
    "$karve" -C "$dir/new" new --template "$1" > "$dir/new.txt"
    mv "$dir/new/$1" "$dir/$2"
    if [ "$1" = triton ]; then
        # Only the first: the reference has no interpreter of its own.
        sed -i "0,/^python = /s|^python = |interpreter = \"$(command -v "$python")\"\npython = |" \
            "$dir/$2/karve.toml"
        git -C "$dir/$2" commit -qam "The Python of this machine"
    fi
}

# Decides between two revisions of a project many times, while another process uses a CPU.
decide() { # project, A, B, the smallest difference that counts
    sh -c 'while :; do :; done' &
    busy=$!
    "$karve" -C "$dir/$1" bench "$2" "$3" --repeat "$times" --min-effect "${4:-2%}" \
        2> "$dir/decide.log" || true
    kill "$busy"
}

# Known work: so many megabytes of zeros before every call of the kernel in Triton.
slower() { # project, megabytes
    "$python" - "$dir/$1/kernel.py" "$2" <<'PYTHON'
import sys
path, megabytes = sys.argv[1], int(sys.argv[2])
text = open(path).read()
work = f'    torch.empty({megabytes} << 20, dtype=torch.uint8, device="cuda").zero_()\n'
assert "    matmul[(tiles,)](" in text
open(path, "w").write(text.replace("    matmul[(tiles,)](", work + "    matmul[(tiles,)](", 1))
PYTHON
    git -C "$dir/$1" commit -qam "$2 MB of zeros"
}

"$python" - <<'PYTHON'
import sys, time
start = time.time()
import numpy, torch, triton
print("python", sys.version.split()[0], "numpy", numpy.__version__, "torch", torch.__version__)
print("triton", triton.__version__, "on", torch.cuda.get_device_name(0))
print("importing all three took %.1f s" % (time.time() - start))
PYTHON
for template in triton cuda; do
    plays "$template" || continue
    echo "== $template"
    new "$template" "$template"
    project="$dir/$template"
    started=$(date +%s)
    timeout "$limit" "$karve" -C "$project" run --yes --rounds 12 > "$dir/$template.txt" 2>&1 ||
        failed="$failed $template"
    tail -15 "$dir/$template.txt"
    took=$(($(date +%s) - started))
    case $template in triton) most="240 s" ;; *) most="180 s" ;; esac
    row "$template template, 12 rounds" "$took s" "$most"
    "$python" "$here/gpu-figures.py" "$project"/.karve/*/events.jsonl > "$dir/figures.txt"
    cat "$dir/figures.txt"
    sed 's/^/  /' "$dir/figures.txt" >> "$table"
done
for template in triton cuda; do
    plays same || continue
    # A comment is not faster.
    new "$template" "$template-same"
    kernel=$(git -C "$dir/$template-same" ls-files "kernel.*")
    case $kernel in *.py) comment="# nothing" ;; *) comment="// nothing" ;; esac
    echo "$comment" >> "$dir/$template-same/$kernel"
    git -C "$dir/$template-same" commit -qam "Nothing"
    decide "$template-same" HEAD~1 HEAD > "$dir/same.txt"
    row "no-ops, $template template" "$(sed -n 's/^decided *//p' "$dir/same.txt")" "none faster"
    row "  time of a decision" "$(sed -n 's/^time *//p' "$dir/same.txt")" "5 s"
    row "  a pair" "$(sed -n 's/^pair  *//p' "$dir/same.txt")" "12 ms, 50%"
    grep -q " 0 faster" "$dir/same.txt" || failed="$failed no-op"
done
if plays tuner; then
    new triton triton-tuned
    started=$(date +%s)
    "$karve" -C "$dir/triton-tuned" tune --budget 24 > "$dir/tuned.txt" 2>&1 ||
        failed="$failed tune"
    tail -12 "$dir/tuned.txt"
    took=$(($(date +%s) - started))
    row "karve tune, 24 settings, its start and a duel" "$took s" "60 s"
fi
for megabytes in 19 4; do
    plays gains || continue
    new triton "triton-$megabytes"
    slower "triton-$megabytes" "$megabytes"
    # A change of 2% is found every other time where less than 2% does not count.
    decide "triton-$megabytes" HEAD HEAD~1 1% > "$dir/slower.txt"
    case $megabytes in 19) share=5 most="2 s" ;; *) share=2 most="95% found" ;; esac
    row "about +$share%" "$(sed -n 's/^decided *//p' "$dir/slower.txt")" "$most"
    row "  time of a decision" "$(sed -n 's/^time *//p' "$dir/slower.txt")" ""
    row "  speedup without that work" "$(sed -n 's/^speedup *//p' "$dir/slower.txt")" ""
done
# A kernel of a few microseconds, without its launches and with inputs in the cache.
for keys in 'launch = "graph"' 'launch = "graph"\ncache = "warm"'; do
    plays small || continue
    rm -rf "$dir/triton-small"
    new triton triton-small
    sed -i -e "s/M=2048,N=2048,K=2048/M=256,N=256,K=256/" -e "s/^reduction = /$keys\n&/" "$dir/triton-small/karve.toml"
    git -C "$dir/triton-small" commit -qam "A small case"
    echo "# nothing" >> "$dir/triton-small/kernel.py"
    git -C "$dir/triton-small" commit -qam "Nothing"
    decide triton-small HEAD~1 HEAD > "$dir/small.txt"
    named=$(printf '%s' "$keys" | sed 's/\\n/, /')
    row "no-ops, 256^3, $named" "$(sed -n 's/^decided *//p' "$dir/small.txt")" "none faster"
    row "  time of a decision" "$(sed -n 's/^time *//p' "$dir/small.txt")" "5 s"
    grep -q " 0 faster" "$dir/small.txt" || failed="$failed graph"
done
if plays faults; then
    sh "$here/gpu-faults.sh" "$karve" "$dir/faults" "$python" > "$dir/faults.txt" || failed="$failed faults"
    cat "$dir/faults.txt"
fi
echo
cat "$table"
echo "projects are in $dir"
test -z "$failed" || { echo "failed:$failed"; exit 1; }
