#!/bin/sh
# Two campaigns in a row: does the second need fewer rounds because of what the first learned?
#
#   crates/karve/benches/twice/run.sh [--seeds 3] [--keep DIR]
#
# For every seed the built-in strategy works on gemm/, then on linear/ with the same campaign root,
# so that it knows what the first has learned; then on linear/ alone. The last campaign knows what the
# first has learned and, in its project, poison.md: a false entry with forged evidence.
#
# It prints a table, and fails unless the second campaign needs fewer rounds to the same speedup, the
# false entry ends refuted, and the result is as good with it: not proven to be slower by 5% in a duel
# of the two final kernels. Nobody's own entries are read.
#
# $KARVE is the karve that is used, by default the one of target/release.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
exec "${PYTHON:-python3}" "$here/twice.py" "$@"
