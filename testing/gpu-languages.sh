#!/bin/sh
# Runs the templates in cuTile and CuTe DSL on a machine with an NVIDIA GPU and a PyTorch: each is
# checked, then cuTile has a campaign under tilegym, and CuTe DSL one round under hyper-mla.
#
#   testing/gpu-languages.sh KARVE [PACKS]
#
# PACKS is a directory with cutile.tar.xz, nvvm.tar.xz and cute.tar.xz, for a machine without a network:
# what is not there yet is unpacked to PLACE (/opt/karve-languages) and made known to its Python.
# TEMPLATES names those to run, by default "cutile cute-dsl"; LIMIT the seconds of a campaign (120),
# ROUNDS those of cuTile (8), QUICK leaves out "karve check".
# Takes at most six minutes. Projects, campaigns and whole outputs lie in DIR ($OUT if that is set, or a
# temporary directory); a summary is printed at the end. The directory of projects must not lie in a git
# repository, so projects are made in WORK (a temporary directory).
set -u
karve=$(readlink -f "${1:?"usage: testing/gpu-languages.sh KARVE [PACKS]"}")
packs=${2:-}
python=$(command -v "${PYTHON:-python3}")
place=${PLACE:-/opt/karve-languages}
out=${OUT:-$(mktemp -d)}
work=${WORK:-$(mktemp -d)}
export GIT_AUTHOR_NAME=karve GIT_AUTHOR_EMAIL=karve@localhost
export GIT_COMMITTER_NAME=karve GIT_COMMITTER_EMAIL=karve@localhost
export KARVE_LEASE_DIR="$work/leases"
mkdir -p "$out" "$work"
templates=${TEMPLATES:-cutile cute-dsl}
limit=${LIMIT:-120}
started=$(date +%s)
since() { echo $(($(date +%s) - started)); }

# The packages.
for pack in cutile nvvm cute; do
    if [ -n "$packs" ] && [ -f "$packs/$pack.tar.xz" ] && [ ! -f "$place/.$pack" ]; then
        mkdir -p "$place" && tar -C "$place" -xJf "$packs/$pack.tar.xz" && touch "$place/.$pack"
    fi
done
if [ -d "$place" ]; then
    site=$("$python" -c 'import site; print(site.getsitepackages()[0])')
    printf '%s\n%s\n' "$place" "$place/nvidia_cutlass_dsl/python_packages" > "$site/karve-languages.pth"
    export PATH="$place/nvidia/cu13/bin:$PATH"
    # With them, tileiras takes the libnvvm of another toolkit, and fails without a reason.
    unset CUDA_HOME CUDA_PATH
fi

new() { # template, preset
    "$karve" -C "$work" new --template "$1" > "$out/$1.txt"
    sed -i "0,/^python = /s|^python = |interpreter = \"$python\"\npython = |" "$work/$1/karve.toml"
    # One change in each round: no sweep over all knobs at once.
    printf '\n[policy]\npreset = "%s"\n\n[policy.tune]\nshare = 0\n' "$2" >> "$work/$1/karve.toml"
    git -C "$work/$1" commit -qam "The Python of this machine, and $2"
}

# Whether the kernel is right at all, without karve.
plain() { # template
    (cd "$work/$1" && timeout 60 "$python" - "$1") <<'PYTHON' >> "$out/$1.txt" 2>&1
import sys, time, torch
start = time.time()
sys.path.insert(0, ".")
from kernel import kernel_fn
kind = torch.float16 if sys.argv[1] == "cutile" else torch.float32
for m, n, k in (1024, 1024, 1024), (1000, 520, 300), (500, 300, 200):
    a = torch.randn(m, k, device="cuda", dtype=kind)
    b = torch.randn(k, n, device="cuda", dtype=kind)
    error = (kernel_fn(a, b).double() - a.double() @ b.double()).abs().max().item()
    print("plain call", (m, n, k), "largest error %.2g" % error, "after %.1f s" % (time.time() - start))
PYTHON
    echo "plain call ended with $?, $(since) s" >> "$out/$1.txt"
}

tried() { # template, seconds, words of karve
    template=$1 limit=$2
    shift 2
    echo "== karve $*" >> "$out/$template.txt"
    timeout "$limit" "$karve" -C "$work/$template" "$@" >> "$out/$template.txt" 2>&1
    echo "== ended with $?, $(since) s" >> "$out/$template.txt"
}

for template in $templates; do
    case $template in
        cutile) preset=tilegym rounds=${ROUNDS:-8} ;;
        *) preset=hyper-mla rounds=1 ;;
    esac
    new "$template" "$preset"
    plain "$template"
    [ -n "${QUICK:-}" ] || tried "$template" 45 check
    tried "$template" "$limit" run --yes --rounds "$rounds"
done
for template in $templates; do
    tried "$template" 10 log
    tried "$template" 10 report
    cat "$work/$template"/.karve/*/events.jsonl > "$out/$template.events.jsonl" 2> /dev/null
    tail -n +1 "$work/$template"/.karve/*/sandbox/perf_results.md >> "$out/$template.txt" 2> /dev/null
done
"$python" - "$out" $templates <<'PYTHON'
import json, sys
for name in sys.argv[2:]:
    print("==", name)
    with open("%s/%s.txt" % (sys.argv[1], name)) as file:
        for line in file:
            if line.startswith(("plain call", "== ")):
                print("  ", line.rstrip())
    kept = 0
    with open("%s/%s.events.jsonl" % (sys.argv[1], name)) as file:
        for line in file:
            event = json.loads(line)["event"]
            if event["type"] == "proposed" and event.get("hypothesis"):
                print("  ", event["round"], event["hypothesis"]["title"])
            elif event["type"] == "settled":
                kept += event["verdict"]["verdict"] == "keep"
                print("    ", json.dumps(event["verdict"])[:200])
            elif event["type"] == "profiled":
                print("     profile:", json.dumps(event)[:300])
            elif event["type"] == "finished":
                print("  ", json.dumps(event["reason"])[:200])
    print("  ", kept, "kept")
PYTHON
echo "all of it took $(since) s; outputs are in $out"
