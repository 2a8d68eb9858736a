#!/bin/sh
# The tests, in three sizes, from anywhere, on a machine with Rust, git and a C compiler:
#
#   ./test.sh --quick   format, lints, unit tests and ten end-to-end tests, while you work
#   ./test.sh           what must hold before a change lands
#   ./test.sh --full    everything: every case of every test, the demo, the benchmarks with bounds
#
# CONTRIBUTING.md says what only the full run proves. Installs the few system packages it needs
# where it may (root and apt); what cannot be checked here is named at the end as "skipped: ...".
set -eu
cd "$(dirname "$0")"

size=default
case "$#:${1-}" in
0:) ;;
1:--quick) size=quick ;;
1:--full) size=full ;;
*)
    echo "error: unknown arguments: $*"
    echo "hint: ./test.sh [--quick | --full]"
    exit 2
    ;;
esac >&2

skipped=""
spent=""

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

# need_file <file> <package>: true if the file is there, or its package can be installed.
need_file() {
    [ -e "$1" ] || need "$1" "$2" || [ -e "$1" ]
}

# need_module <module> <package>: true if the Python of this machine has it, or can get it.
need_module() {
    /usr/bin/python3 -c "import $1" 2>/dev/null || need "$1" "$2" ||
        /usr/bin/python3 -c "import $1" 2>/dev/null
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
    took=$(($(date +%s) - started))
    echo "== $name: $took s"
    spent="$spent$(printf '%-14s %5d s' "$name" "$took")
"
}

# Where the time went, also if a step failed; an installation does not outlive the run.
summary() {
    status=$?
    [ -z "$installing" ] || kill "$installing" 2>/dev/null || true
    printf '%s' "$spent"
    printf '%s' "$skipped"
    total=$(($(date +%s) - begun))
    if [ "$status" = 0 ]; then
        echo "passed in $total s"
    else
        echo "failed at $name after $total s"
    fi
}

# lints: what needs no test to run.
lints() {
    step format cargo fmt --all --check
    step lint cargo clippy --workspace --all-targets --locked -- -D warnings
}

# quick: one end-to-end test of each kind, after all that is tested without a repository.
quick() {
    lints
    step unit cargo test --workspace --lib --locked --quiet
    step style cargo test -p karve --test tidy --locked --quiet
    step few few
}

# few: the tests that testing/quick names, each of which must exist.
few() {
    chosen=$(sed -e '/^#/d' testing/quick)
    for test in $chosen; do
        file=crates/karve/tests/$(echo "${test%::*}" | sed 's,::,/,g').rs
        grep -q "fn ${test##*::}()" "$file" || {
            echo "error: testing/quick names $test, which is not a test"
            echo "hint: name another one there"
            exit 1
        } >&2
    done
    # shellcheck disable=SC2086 # One argument for each name.
    cargo test -p karve --test it --locked --quiet -- --exact $chosen
}

# install_tools: in the background, since it waits for the network, and since the lints and the
# build often have work for one core only.
install_tools() {
    mkdir -p target
    {
        build_mdbook || true
        install_ray || true
        testing/mcp.sh --install "$PWD/target/clients" || true
        testing/agents.sh
    } >target/tools.log 2>&1 &
    installing=$!
}

# await_tools: waits for the installation, and says how it ended.
await_tools() {
    wait "$installing" || skip 'real command-line agents: testing/agents.sh failed'
    installing=""
    cat target/tools.log
    [ -x target/ray/bin/ray ] || skip 'campaigns in actors of Ray: it cannot be installed'
    [ -d target/agents/node_modules ] || skip 'real command-line agents: npm is not installed'
}

# install_ray: in an environment of its own, once.
install_ray() {
    [ -x target/ray/bin/ray ] ||
        { python3 -m venv target/ray && target/ray/bin/pip install --quiet 'ray==2.*'; }
}

# build_mdbook: once, where it is missing.
build_mdbook() {
    command -v mdbook >/dev/null 2>&1 || [ -x target/tools/bin/mdbook ] ||
        CARGO_PROFILE_DEV_DEBUG=0 CARGO_TARGET_DIR=target/tools/build nice cargo install mdbook \
            --version 0.5.4 --locked --debug --no-default-features --features search --jobs 1 \
            --root target/tools --quiet
}

# book: the pages of docs/ with search, by mdbook.
book() {
    PATH="$PATH:$PWD/target/tools/bin"
    command -v mdbook >/dev/null 2>&1 || {
        skip 'the book of docs/: mdbook cannot be installed'
        return 0
    }
    mdbook build
    test -s target/book/own-kernel.html
}

# landing: what must hold before a change lands, with one build besides that of the lints.
landing() {
    install_tools
    lints
    step documentation env RUSTDOCFLAGS="-D warnings" \
        cargo doc --workspace --no-deps --document-private-items --locked
    if cargo deny --version >/dev/null 2>&1; then
        # Dependencies of other platforms are checked too.
        cargo fetch --locked --quiet || true
        step dependencies cargo deny --offline check bans licenses sources
    else
        skip 'licenses and sources of dependencies: "cargo deny" is not installed'
    fi
    step build cargo test --workspace --locked --no-run
    step tools await_tools
    step book book
    # Tests wait for processes and clocks: one more than the CPUs keeps these busy.
    step test env RUST_TEST_THREADS="$(($(nproc) + 1))" cargo test --workspace --locked
    step rules cargo test -p karve --bench rules --locked
    step brief-size cargo test -p karve --bench brief --locked
    step clients testing/mcp.sh "$PWD/target/debug/karve" "$PWD/target/clients"
}

# timed: what needs an optimized build, because its bounds are times or because it is slow.
timed() {
    step archive ./release.sh
    step demo cargo run --release --locked -- demo
    step scale cargo bench --locked --bench scale -- --quick
    step pages cargo bench --locked --bench scale -- --pages --quick
    step rules-release cargo bench --locked --bench rules
    step zoo cargo bench --locked --bench zoo
    step knowledge cargo bench --locked --bench knowledge
    step brief cargo bench --locked --bench brief
    step fuzz env KARVE_FUZZ=20000 cargo test --profile fuzz -p karve --test fuzz --locked
}

begun=$(date +%s)
installing=""
name=setup
trap summary EXIT
trap 'exit 130' INT TERM
must cargo cargo
must git git
must cc gcc
must make make
case $size in
quick) ;;
*)
    need_numpy || skip 'kernels in Python: /usr/bin/python3 has no NumPy'
    need perf linux-perf || skip 'profiles by perf: it is not installed'
    need valgrind valgrind || skip 'profiles by valgrind: it is not installed'
    need sshd openssh-server || skip 'campaigns over ssh: sshd is not installed'
    need slurmctld slurmctld && need slurmd slurmd && need salloc slurm-client && need munged munge ||
        skip 'campaigns in allocations of SLURM: it is not installed'
    need chromium chromium || skip 'pages in a browser: Chromium is not installed'
    need cmake cmake && need_file /usr/include/benchmark/benchmark.h libbenchmark-dev ||
        skip 'projects with Google Benchmark: cmake or libbenchmark-dev is not installed'
    need_module pytest_benchmark python3-pytest-benchmark ||
        skip 'projects with pytest-benchmark: it is not installed'
    ;;
esac
case $size in
quick) quick ;;
default) landing ;;
full)
    export KARVE_TEST_ALL=1
    cargo fetch --locked --quiet --manifest-path testdata/projects/cargo-criterion/Cargo.toml ||
        skip 'projects with criterion: its crates cannot be fetched'
    landing
    timed
    ;;
esac
