#!/bin/sh
# Drives campaigns through "karve mcp" with other people's clients: the official Python client, over
# standard input and output and over HTTP, and the MCP inspector. "testing/mcp.sh KARVE CACHE": the
# clients are installed into CACHE once, also by "testing/mcp.sh --install CACHE" alone. What cannot
# be had is named as "skipped: ...".
set -eu
karve=$1
cache=$2
here=$(cd "$(dirname "$0")" && pwd)
inspector="$cache/node_modules/.bin/mcp-inspector"
mkdir -p "$cache"

# has_client: true if the Python client is there, or can be installed.
has_client() {
    "$cache/venv/bin/python" -c 'import mcp' 2>/dev/null ||
        "$cache/venv/bin/pip" install --quiet mcp==2.3.0 2>/dev/null
}

# has_venv: true if there is a Python to install it into.
has_venv() {
    [ -x "$cache/venv/bin/python" ] || python3 -m venv "$cache/venv" 2>/dev/null
}

# has_inspector: true if the inspector is there, or can be installed.
has_inspector() {
    [ -x "$inspector" ] || ! command -v npm >/dev/null 2>&1 ||
        npm install --silent --no-audit --no-fund --prefix "$cache" \
            @modelcontextprotocol/inspector@0.15.0 >/dev/null 2>&1 || true
    [ -x "$inspector" ]
}

if [ "$karve" = --install ]; then
    has_venv && has_client || true
    has_inspector || true
    exit 0
fi
lab=$(mktemp -d)
trap 'rm -rf "$lab"' EXIT

# project <name>: the toy, under git.
project() {
    mkdir "$lab/$1"
    cp -R "$here/toy/." "$here/../testdata/gains/karve.toml" "$lab/$1/"
    (
        cd "$lab/$1"
        git init -q -b main
        git add -A
        git -c user.name=test -c user.email=test@localhost commit -q -m "the toy"
    )
}

export KARVE_LEASE_DIR="$lab/leases"
if has_venv; then
    if has_client; then
        for way in stdio http; do
            project "$way"
            "$cache/venv/bin/python" "$here/mcp/drive.py" "$karve" "$lab/$way" "$way"
        done
    else
        echo "skipped: the Python client of MCP cannot be installed from PyPI here"
    fi
else
    echo "skipped: the Python client of MCP: python3 cannot make a virtual environment here"
fi

if has_inspector; then
    project inspected
    ask() { "$inspector" --cli "$karve" -C "$lab/inspected" mcp --yes "$@"; }
    ask --method tools/list | grep -q '"name": "submit"'
    ask --method tools/call --tool-name next | grep -q 'state one hypothesis'
    ask --method tools/call --tool-name propose --tool-arg title="halve the work" \
        --tool-arg mechanism="half of it is not needed" --tool-arg expected_ratio=2 |
        grep -q 'implement'
    sed -i 's/^TIME=.*/TIME=50/' "$lab/inspected/.karve/toy/agent-workspace/kernel.sh"
    ask --method tools/call --tool-name submit | grep -q 'keep'
    echo "driven inspector"
else
    echo "skipped: the MCP inspector cannot be installed with npm here"
fi
