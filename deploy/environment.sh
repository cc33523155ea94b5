# Sourced by the scripts: settings that mpirun wants on workstations, in containers and as root.
export OMPI_MCA_rmaps_base_oversubscribe=1             # more ranks than cores
export OMPI_MCA_hwloc_base_binding_policy=none         # each rank may use all its threads
export OMPI_MCA_btl_vader_single_copy_mechanism=none   # containers forbid cross-process copies
if [ "$(id -u)" -eq 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi

# build DIR PREFIX TESTS: configures and builds; prints the log only when something fails.
build() {
  local dir=$1 prefix=$2 tests=$3 log
  mkdir -p "$dir"
  log=$dir/build.log
  local options=(-DSHARDMAT_TESTS="$tests")
  if [ -n "$prefix" ]; then options+=(-DCMAKE_PREFIX_PATH="$(realpath "$prefix")"); fi
  if ! cmake -S . -B "$dir" "${options[@]}" > "$log" 2>&1; then cat "$log" >&2; return 1; fi
  grep -E '^-- (HDF5|CUDA|NCCL|fast_float|libzip)' "$log" || true
  if ! cmake --build "$dir" --parallel "$(nproc)" >> "$log" 2>&1; then tail -n 50 "$log" >&2; return 1; fi
}
