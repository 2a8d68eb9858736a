# The toy's test: the kernel must compute 7, and must come back.
. ./build/kernel.sh
[ -z "${HANG-}" ] || sleep 1000
if [ -n "${MEMORY-}" ] && [ "${1:-0}" -gt "$MEMORY" ]; then
    echo "toy: out of memory at $1" >&2
    exit 1
fi
if [ "$result" != 7 ]; then
    echo "mismatch: got $result, expected 7" >&2
    exit 1
fi
