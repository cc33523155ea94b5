#!/usr/bin/env bash
# run.sh BUILD_DIR [CMAKE_OPTION...]: installs BUILD_DIR into a new prefix, builds the consumer against it, runs it on two ranks.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build_dir=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log=$work/log
quietly() { "$@" >> "$log" 2>&1 || { cat "$log"; exit 1; }; }
quietly cmake --install "$build_dir" --prefix "$work/prefix"
config=$(find "$work/prefix" -name ShardmatConfig.cmake)
quietly cmake -S "$here" -B "$work/build" "$@" -DShardmat_DIR="$(dirname "$config")"
quietly cmake --build "$work/build" --parallel 2
. "$here/../../deploy/environment.sh"
mpirun -n 2 "$work/build/consumer"
"$work/build/consumer_c"
"$work/prefix/bin/shardmat" --version
for schema in "$here"/../../tools/schemas/*.schema.json; do
  cmp "$schema" "$work/prefix/share/shardmat/schemas/$(basename "$schema")"
done
