#!/bin/sh
# Tunes the kernels of examples/ for real, with karve and with Kernel Tuner: one command, one table.
#
#   crates/karve/benches/peers/live.sh [--budget 60] [--seeds 3] [--only NAMES]
#
# Each tuner gets --budget seconds on each kernel with each seed; NAMES are examples, separated by
# commas. What they chose then meets the default in a duel of karve bench. With 60 seconds, three
# seeds and three kernels it takes half an hour. live.py says what is compared.
#
# Kernel Tuner is installed from PyPI, once, as run.sh does. $KARVE is the karve that is used; by
# default one is built.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
home=${KARVE_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/karve-peers}
"$here/run.sh" --install

if [ -z "${KARVE:-}" ]; then
    root=$(cd "$here/../../../.." && pwd)
    cargo build --release --locked --quiet -p karve --manifest-path "$root/Cargo.toml"
    KARVE=${CARGO_TARGET_DIR:-$root/target}/release/karve
fi
export KARVE OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
exec "$home/venv/bin/python" "$here/live.py" "$@"
