#!/bin/sh
# Makes an archive for this platform: the program, completions, man pages, the schema of karve.toml.
#
#   ./release.sh [DIR]   writes DIR/karve-VERSION-TARGET.tar.gz and its SHA-256 (DIR: target/archive)
#
# The program loads kernels and GPU libraries at run time, so it is linked with the C library of this
# machine, and runs where that one is at least as new. Build on the oldest system that you support.
set -eu
cd "$(dirname "$0")"
dir=${1:-target/archive}

KARVE_COMMIT=$(git describe --always --dirty --abbrev=12)
export KARVE_COMMIT
cargo build --release --locked
karve=target/release/karve
version=$("$karve" -V | cut -d' ' -f2)
target=$(rustc -vV | sed -n 's/^host: //p')
name=karve-$version-$target

mkdir -p "$dir"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
root=$stage/$name
mkdir -p "$root/bin" "$root/completions" "$root/doc"
cp "$karve" "$root/bin/"
cp README.md LICENSE CHANGELOG.md karve.schema.json "$root/doc/"
for shell in bash fish zsh; do
    "$karve" completions "$shell" >"$root/completions/karve.$shell"
done
"$karve" man "$root/share/man/man1"
tar -C "$stage" --owner=0 --group=0 --sort=name -czf "$dir/$name.tar.gz" "$name"
(cd "$dir" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")

glibc=$(objdump -T "$karve" 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
echo "$dir/$name.tar.gz: $(wc -c <"$dir/$name.tar.gz") bytes, needs ${glibc:-the C library of this machine}"
