#!/bin/sh
# Everything that must hold before a change lands: "./test.sh", from anywhere, on a machine with
# Rust, git and a C compiler. Installs the few system packages it needs where it may (root and
# apt); what cannot be checked here is named at the end as "skipped: ...".
set -eu
cd "$(dirname "$0")"

skipped=""

skip() {
    skipped="${skipped}skipped: $1
"
    echo "skipped: $1"
}

# need <program> <package>: true if the program is there, or can be installed.
need() {
    if command -v "$1" >/dev/null 2>&1; then
        return 0
    fi
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "== installing $2, for $1"
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$2" >/dev/null 2>&1 ||
            { apt-get update -qq >/dev/null 2>&1 &&
                DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$2" >/dev/null 2>&1; } ||
            true
    fi
    command -v "$1" >/dev/null 2>&1
}

# need_numpy: true if the Python of this machine has NumPy, or it can be installed.
need_numpy() {
    need python3 python3 && /usr/bin/python3 -c 'import numpy' 2>/dev/null && return 0
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "== installing python3-numpy"
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            python3-numpy >/dev/null 2>&1 || true
    fi
    /usr/bin/python3 -c 'import numpy' 2>/dev/null
}

# must <program> <package>: as need, but nothing can be checked without it.
must() {
    need "$1" "$2" || {
        echo "error: $1 is missing"
        echo "hint: install the package $2, or run ./test.sh as root on a machine with apt"
        exit 1
    } >&2
}

# step <name> <command ...>: says what is done and how long it took.
step() {
    name=$1
    shift
    echo "== $name: $*"
    started=$(date +%s)
    "$@"
    echo "== $name: $(($(date +%s) - started)) s"
}

begun=$(date +%s)
must cargo cargo
must git git
must cc gcc
must make make
need_numpy || skip 'kernels in Python: /usr/bin/python3 has no NumPy'
need perf linux-perf || skip 'profiles by perf: it is not installed'
need valgrind valgrind || skip 'profiles by valgrind: it is not installed'
step agents testing/agents.sh
[ -d target/agents/node_modules ] || skip 'real command-line agents: npm is not installed'

step format cargo fmt --all --check
step lint cargo clippy --workspace --all-targets --locked -- -D warnings
step documentation env RUSTDOCFLAGS="-D warnings" \
    cargo doc --workspace --no-deps --document-private-items --locked
step test cargo test --workspace --locked
step clients testing/mcp.sh "$PWD/target/debug/karve" "$PWD/target/clients"
if cargo deny --version >/dev/null 2>&1; then
    # Also those of other platforms are looked at.
    cargo fetch --locked --quiet || true
    step dependencies cargo deny --offline check bans licenses sources
else
    skip 'licenses and sources of dependencies: "cargo deny" is not installed'
fi
step demo cargo run --release --locked -- demo
step scale cargo bench --locked --bench scale -- --quick
step rules cargo bench --locked --bench rules
step zoo cargo bench --locked --bench zoo -- --quick
step knowledge cargo bench --locked --bench knowledge
step brief cargo bench --locked --bench brief

printf '%s' "$skipped"
echo "passed in $(($(date +%s) - begun)) s"
