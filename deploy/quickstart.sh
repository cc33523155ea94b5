#!/usr/bin/env bash
# deploy/quickstart.sh [--prefix DIR] [--ranks N] [--build DIR]
# From a fresh machine to a verified distributed product: installs what is missing, builds, partitions a real finite-element
# matrix and multiplies it, on all GPUs there are, or on the host. --prefix DIR: libraries carried in DIR/include, DIR/lib.
set -euo pipefail

prefix="" ranks="" dir=build
while [ $# -gt 0 ]; do
  case $1 in
    --prefix) prefix=$(realpath "${2:?--prefix wants a directory}"); shift 2 ;;
    --ranks) ranks=${2:?--ranks wants a number}; shift 2 ;;
    --build) dir=$(realpath -m "${2:?--build wants a directory}"); shift 2 ;;
    -h | --help) sed -n '2,4p' "$0"; exit 0 ;;
    *) echo "quickstart.sh: unknown option $1 (there are --prefix DIR, --ranks N and --build DIR)" >&2; exit 2 ;;
  esac
done
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. deploy/environment.sh
if [ -n "$prefix" ]; then export LD_LIBRARY_PATH="$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; fi

echo "== 1. Dependencies"
deploy/install-dependencies.sh ${prefix:+--prefix "$prefix"}

echo "== 2. Build (some minutes on two cores, more with CUDA)"
deploy/build.sh --build "$dir" --target shardmat --target shardmat-serve ${prefix:+--prefix "$prefix"}
shardmat=$dir/tools/shardmat work=$dir/quickstart
mkdir -p "$work"

echo "== 3. Partition a matrix of a finite-element code"
"$shardmat" partition tests/data/elasticity_bar.mtx.gz "$work/elasticity_bar.h5" --parts 2,4,8

gpus=$(deploy/gpu-count.sh)
built_with() { grep -q "^-- $1 [0-9]" "$dir/build.log"; }
if [ -z "$ranks" ]; then
  ranks=2
  if [ "$gpus" -gt 0 ] && built_with CUDA; then
    ranks=1
    if built_with NCCL; then ranks=$gpus; fi
  fi
fi
echo
echo "== 4. Multiply on $ranks rank(s)"
if [ "$gpus" -gt 0 ] && ! built_with CUDA; then
  echo "$gpus GPU(s) stay idle: there is no CUDA compiler (nvcc 12.0 or newer) to build for them."
fi
mpirun -n "$ranks" "$shardmat" multiply "$work/elasticity_bar.h5" --iterations 100 --verify --json "$work/report.json" \
  --output "$work/y.npy"
echo "The report as data: $work/report.json"

echo
deploy/quickstart-service.sh "$shardmat" "$work" "$ranks"
echo
echo "Next: $shardmat --help"
echo "The benchmarks, the Python package and the libraries for C and Fortran: cmake --build $dir"
