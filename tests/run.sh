#!/usr/bin/env bash
# tests/run.sh [--label fast|mpi|cli|fault|gpu|multigpu] [--prefix DIR] [--build DIR] [--prebuilt DIR]
# Installs what is missing, builds, and runs every test that this machine can run. --prebuilt DIR runs the test programs found
# in DIR instead, without compiler or CTest (with --label gpu or multigpu).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

label="" prefix="" dir=build prebuilt=""
while [ $# -gt 0 ]; do
  case $1 in
    --label) label=$2; shift 2 ;;
    --prefix) prefix=$2; shift 2 ;;
    --build) dir=$2; shift 2 ;;
    --prebuilt) prebuilt=$2; shift 2 ;;
    -h | --help) sed -n '2,4p' "$0"; exit 0 ;;
    *) echo "run.sh: unknown option $1; see tests/run.sh --help" >&2; exit 2 ;;
  esac
done
. deploy/environment.sh

# run_gpu_tests DIR: the Gpu suites of every test program, then the MultiGpu suites on 2, 3, 4 ranks as far as GPUs go.
run_gpu_tests() {
  local gpus program ranks passed=0 failed=0
  gpus=$(nvidia-smi --list-gpus 2> /dev/null | grep -c '^GPU' || true)
  check() {
    echo "-- $*"
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
  }
  if [ "$label" != multigpu ]; then
    for program in kernels_test comm_test runtime_test; do check "$1/$program" '--gtest_filter=Gpu*' --gtest_brief=1; done
  fi
  for ranks in 2 3 4; do
    if [ "$ranks" -le "$gpus" ]; then
      for program in comm_test runtime_test; do
        check mpirun -n "$ranks" "$1/$program" '--gtest_filter=MultiGpu*' --gtest_brief=1
      done
    fi
  done
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
}

if [ -n "$prebuilt" ]; then
  run_gpu_tests "$prebuilt"
  exit
fi

deploy/install-dependencies.sh --tests ${prefix:+--prefix "$prefix"}
build "$dir" "$prefix" ON
export LD_LIBRARY_PATH="${prefix:+$prefix/lib:}${LD_LIBRARY_PATH:-}"
case $label in
  gpu | multigpu) run_gpu_tests "$dir/tests" ;;
  *) ctest --test-dir "$dir" --output-on-failure ${label:+-L "$label"} ;;
esac
