#!/usr/bin/env bash
# deploy/quickstart.sh [--prefix DIR] [--ranks N] [--build DIR]
# From a fresh machine to a verified distributed product: installs what is missing, builds, partitions a real finite-element
# matrix and multiplies it, on all GPUs there are, or on the host.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

prefix="" ranks="" dir=build
while [ $# -gt 0 ]; do
  case $1 in
    --prefix) prefix=$2; shift 2 ;;
    --ranks) ranks=$2; shift 2 ;;
    --build) dir=$2; shift 2 ;;
    -h | --help) sed -n '2,4p' "$0"; exit 0 ;;
    *) echo "quickstart.sh: unknown option $1 (there are --prefix DIR, --ranks N and --build DIR)" >&2; exit 2 ;;
  esac
done

echo "== 1. Dependencies"
deploy/install-dependencies.sh ${prefix:+--prefix "$prefix"}
. deploy/environment.sh
echo "== 2. Build (about two minutes on two cores)"
build "$dir" "$prefix" OFF
export LD_LIBRARY_PATH="${prefix:+$prefix/lib:}${LD_LIBRARY_PATH:-}"
shardmat=$dir/tools/shardmat

gpus=$(nvidia-smi --list-gpus 2> /dev/null | grep -c '^GPU' || true)
if [ -z "$ranks" ]; then if [ "$gpus" -gt 0 ]; then ranks=$gpus; else ranks=2; fi; fi

echo "== 3. Partition a matrix of a finite-element code"
mkdir -p "$dir/quickstart"
"$shardmat" partition tests/data/elasticity_bar.mtx.gz "$dir/quickstart/elasticity_bar.h5" --parts 2,4,8

echo
echo "== 4. Multiply on $ranks rank(s)"
mpirun -n "$ranks" "$shardmat" multiply "$dir/quickstart/elasticity_bar.h5" --iterations 100 --verify --json "$dir/quickstart/report.json"
echo
echo "The report as data: $dir/quickstart/report.json.  Next: $shardmat --help"
