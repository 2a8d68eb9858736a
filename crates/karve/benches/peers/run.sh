#!/bin/sh
# Plays other autotuners and karve on the same measured spaces: one command, one table.
#
#   crates/karve/benches/peers/run.sh DIR [--seeds 5] [--only NAMES] [--each] [--jobs N]
#
# DIR holds measured spaces: tables as karve reads them (NAME.csv or NAME.csv.gz), each with a
# NAME.json beside it that gives `params`, `constants` and `restrictions`, if they are known.
# NAMES are names of the first column, separated by commas, such as
# kernel_tuner/pso,optuna/tpe,karve/auto.
#
# The others are installed from PyPI, once, outside of the repository: into $KARVE_PEERS, by
# default karve-peers in the user's cache directory. $PYTHON is the Python that makes the
# environment there.
set -eu

KERNEL_TUNER=1.5.0
OPTUNA=5.0.0

here=$(cd "$(dirname "$0")" && pwd)
home=${KARVE_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/karve-peers}
installed=$home/kernel_tuner-$KERNEL_TUNER-optuna-$OPTUNA

if [ ! -f "$installed" ]; then
    mkdir -p "$home"
    "${PYTHON:-python3}" -m venv "$home/venv"
    "$home/venv/bin/pip" install --quiet --disable-pip-version-check \
        "kernel_tuner==$KERNEL_TUNER" "optuna==$OPTUNA"
    touch "$installed"
fi
# live.sh needs no more than that.
if [ "${1:-}" = --install ]; then exit; fi

# One thread for each search: their CPU time is compared.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
exec "$home/venv/bin/python" "$here/peers.py" "$@"
