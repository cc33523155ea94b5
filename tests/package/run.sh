#!/usr/bin/env bash
# run.sh BUILD_DIR: installs BUILD_DIR into a new prefix, builds the consumer against it, runs it on two ranks.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$1" --prefix "$work/prefix" > "$work/log"
cmake -S "$here" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" >> "$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/build" >> "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
. "$here/../../deploy/environment.sh"
mpirun -n 2 "$work/build/consumer"
