#!/bin/sh
# Installs the command-line agents that the end-to-end tests drive, at pinned versions, from npm:
# "testing/agents.sh [DIRECTORY]", target/agents without one. Does nothing for what is there.
set -eu
cd "$(dirname "$0")/.."
dir=${1:-target/agents}

if ! command -v npm >/dev/null 2>&1; then
    echo "skipped: real command-line agents, for npm is not installed"
    exit 0
fi
mkdir -p "$dir"
[ -f "$dir/package.json" ] || echo '{"private": true}' >"$dir/package.json"

# The version is named: npm takes an older one where the newest asks for a newer Node.
install() {
    seen="$dir/node_modules/$1/package.json"
    if [ -f "$seen" ] && grep -q "\"version\": \"$2\"" "$seen"; then
        return 0
    fi
    echo "== installing $1 $2"
    npm install --prefix "$dir" --no-audit --no-fund --silent "$1@$2" ||
        echo "skipped: $1 $2 cannot be installed"
}

install @anthropic-ai/claude-code 2.1.325
install @openai/codex 0.166.0
install @google/gemini-cli 0.61.0
install opencode-ai 1.18.33
