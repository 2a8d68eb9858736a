#!/bin/sh
# Takes the evidence of built-in entries for CPUs on this host, and writes it into them.
#
#   crates/karve/benches/evidence/run.sh [--compiler gcc|clang] [--dry-run] [ID...]
#
# Without an ID it takes all. kernels/ID.c holds the kernel of an entry without the change, and with
# it where AFTER is defined; its first lines name the workload and the flags. Both are checked
# against a plain reference, then "karve bench" lets them meet. What it finds replaces the evidence
# of the same run in crates/karve/knowledge/ID.md, whether it speaks for the entry or against it.
#
# $KARVE is the karve that measures, by default the one of target/release.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
exec "${PYTHON:-python3}" "$here/take.py" "$@"
