#!/usr/bin/env bash
# deploy/build.sh [--build DIR] [--prefix DIR] [--tests] [--configure] [--target NAME]…
# Configures a release in DIR (build) and builds all of it, or the named targets. Says what was found and left out, and shows
# the log only if a step fails. --configure: without the build.
set -euo pipefail

prefix="" dir=build tests=OFF build=1 targets=()
while [ $# -gt 0 ]; do
  case $1 in
    --build) dir=$(realpath -m "${2:?--build wants a directory}"); shift 2 ;;
    --prefix) prefix=$(realpath "${2:?--prefix wants a directory}"); shift 2 ;;
    --tests) tests=ON; shift ;;
    --configure) build=0; shift ;;
    --target) targets+=("${2:?--target wants a name}"); shift 2 ;;
    -h | --help) sed -n '2,4p' "$0"; exit 0 ;;
    *) echo "build.sh: unknown option $1 (there are --build DIR, --prefix DIR, --tests, --configure, --target NAME)" >&2; exit 2 ;;
  esac
done
cd "$(dirname "${BASH_SOURCE[0]}")/.."

options=(-DSHARDMAT_TESTS="$tests" -DSHARDMAT_PRECOMPILE=ON)
# Where no GPU can run the tests, kernels for one architecture compile in two thirds of the time.
if [ "$tests" = ON ] && [ ! -e "$dir/CMakeCache.txt" ] && [ "$(deploy/gpu-count.sh)" -eq 0 ]; then
  options+=(-DCMAKE_CUDA_ARCHITECTURES=90)
fi
if [ -n "$prefix" ]; then options+=(-DCMAKE_PREFIX_PATH="$prefix"); fi

mkdir -p "$dir"
log=$dir/build.log
configure() {
  local generator=()
  if [ ! -e "$dir/CMakeCache.txt" ] && command -v ninja > /dev/null; then generator=(-G Ninja); fi
  cmake -S . -B "$dir" "${generator[@]}" "${options[@]}" > "$log" 2>&1
}
# A directory configured for another place, compiler or generator is configured anew, once.
if ! configure; then
  rm -rf "$dir/CMakeCache.txt" "$dir/CMakeFiles"
  if ! configure; then
    cat "$log" >&2
    exit 1
  fi
  echo "The settings kept in $dir did not fit this machine and were dropped."
fi
grep -E '^-- (HDF5 [0-9]|(CUDA|NCCL|fast_float|libzip|libpng|OpenSSL|METIS|PT-Scotch|MUMPS|Eigen)[ :])' "$log" | sed 's/^--/  /' || true
if [ "$build" = 0 ]; then exit; fi
# Shows "[312/622] …" (ninja) or "[ 50%] …" (make) of what it reads: on a terminal in one line, elsewhere a line each 10 %.
show_progress() {
  local terminal=0
  if [ -t 1 ]; then terminal=1; fi
  # Not awk: mawk, Debian's awk, holds lines back until its buffer is full.
  local line percent shown=0 drawn=0
  while IFS= read -r line || [ -n "$line" ]; do
    printf '%s\n' "$line" >> "$log"
    if [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
      percent=$((BASH_REMATCH[2] > 0 ? 100 * 10#${BASH_REMATCH[1]} / 10#${BASH_REMATCH[2]} : 100))
    elif [[ $line =~ ^\[\ *([0-9]+)%\] ]]; then
      percent=$((10#${BASH_REMATCH[1]}))
    else
      continue
    fi
    if [ "$terminal" = 1 ]; then
      printf '\r\033[K  %s' "${line:0:100}"
      drawn=1
    elif [ $((percent / 10)) -gt "$shown" ]; then
      shown=$((percent / 10))
      printf '  %d %% built\n' $((10 * shown))
    fi
  done
  if [ "$drawn" = 1 ]; then printf '\r\033[K'; fi
}
if ! cmake --build "$dir" --parallel "$(nproc)" ${targets[@]:+--target "${targets[@]}"} 2>&1 | show_progress; then
  echo "The build failed; the end of $log:" >&2
  { grep -E -A 12 '(error|Error)[: ]' "$log" || tail -n 50 "$log"; } | head -n 80 >&2
  exit 1
fi
