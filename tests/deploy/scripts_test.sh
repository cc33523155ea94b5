#!/usr/bin/env bash
# Dry runs of the scripts: fake nvidia-smi, mpirun and test programs write down how they were called.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
fail() { echo "FAILED: $*" >&2; failures=$((failures + 1)); }
# expect STATUS TEXT COMMAND…: the command ends so and says so.
expect() {
  local status=0
  "${@:3}" > "$work/said" 2>&1 || status=$?
  [ "$status" -eq "$1" ] || fail "${*:3}: status $status instead of $1: $(cat "$work/said")"
  grep -qF -- "$2" "$work/said" || fail "${*:3}: does not say '$2' but: $(cat "$work/said")"
}
# fake NAME BODY: a program of that name in the fake PATH.
fake() {
  mkdir -p "$(dirname "$work/$1")"
  printf '#!/bin/sh\n%s\n' "$2" > "$work/$1"
  chmod +x "$work/$1"
}

for script in "$root"/deploy/*.sh "$root"/deploy/slurm/*.slurm "$root"/tests/run.sh "$root"/.ci/run; do
  bash -n "$script" || fail "$script: syntax"
  case $script in *environment.sh | *.slurm) continue ;; esac
  if [ "$(basename "$script")" != run ] && [ "$(basename "$script")" != gpu-count.sh ]; then
    expect 0 "$(basename "$script")" "$script" --help
    expect 2 "unknown option --wrong" "$script" --wrong
  fi
done
expect 2 "no label quick" "$root/tests/run.sh" --label quick

export PATH="$work/bin:$PATH" CALLS="$work/calls"
fake bin/nvidia-smi 'case $* in *--id=*) echo "00000000:0${*##*--id=}:00.0"; exit ;; esac
for i in 0 1 2; do echo "GPU $i: Fake (UUID: GPU-$i)"; done'
expect 0 3 "$root/deploy/gpu-count.sh"
expect 0 2 env CUDA_VISIBLE_DEVICES=0,2 "$root/deploy/gpu-count.sh"
expect 0 0 env CUDA_VISIBLE_DEVICES= "$root/deploy/gpu-count.sh"

# Ranks of the scaling study: within a node, then whole nodes.
fake bin/srun 'echo "$*"'
study() {
  cd "$work"
  SLURM_JOB_NUM_NODES=$1 SLURM_NTASKS_PER_NODE=$2 SLURM_CPUS_PER_TASK=8 SLURM_JOB_ID=$RANDOM$RANDOM "${@:3}"
}
slurm=$root/deploy/slurm/scaling.slurm
expect 0 "--ntasks=18 --ntasks-per-node=6 --cpus-per-task=8" study 3 6 "$slurm"
expect 0 "shardmat bench scaling a.h5 b.h5 --ranks 1,2,4,8,16,32,40 " study 10 4 "$slurm" a.h5 b.h5
expect 0 " --ranks 1,2,4,6,12,18 " study 3 6 "$slurm"
expect 0 " --ranks 1 " study 1 1 "$slurm"
# A job that Slurm puts back goes on in the folder of its first start, another job does not.
mkdir "$work/scaling-2020-01-01-000000-job77"
expect 0 "--json scaling-2020-01-01-000000-job77/scaling.json" study 1 1 env SLURM_JOB_ID=77 SLURM_RESTART_COUNT=1 "$slurm"
for first in "7 1" "77 0"; do
  expect 0 "written: scaling-" study 1 1 env SLURM_JOB_ID=${first% *} SLURM_RESTART_COUNT=${first#* } "$slurm"
  ! grep -q scaling-2020 "$work/said" || fail "the folder of another start: $(cat "$work/said")"
done
expect 0 "written: mine" study 1 1 env SLURM_JOB_ID=77 SLURM_RESTART_COUNT=1 FOLDER=mine "$slurm"
grep -q '^#SBATCH --open-mode=append$' "$slurm" || fail "a second start empties the log of the first"
echo 'raise ImportError' > "$work/matplotlib.py"
expect 0 "make the page elsewhere" study 1 1 env PYTHONPATH="$work" "$slurm"
expect 1 "start it with sbatch" env -u SLURM_JOB_NUM_NODES "$slurm"

# What each job says of its ranks: binding, GPU, and the warning where a rank does not see the GPUs of the others. srun starts two
# ranks on a node of two GPUs here, with GPUs of a node (RANKS_SEE="0,1 0,1") or of a task.
fake bin/srun 'case $* in *show_rank*) ;; *) echo "$*"; exit ;; esac
while [ "$1" != bash ]; do shift; done
rank=0
for seen in $RANKS_SEE; do
  SLURM_PROCID=$rank SLURM_LOCALID=$rank SLURMD_NODENAME=n1 CUDA_VISIBLE_DEVICES=$seen "$@"
  rank=$((rank + 1))
done'
fake bin/shardmat 'echo "shardmat $*"'
warning="WARNING: ranks of a node reach each other's GPUs only if they see them: give --gpus-per-node, not --gpus-per-task"
for job in solve scaling serve; do
  script=$root/deploy/slurm/$job.slurm
  expect 0 "rank 1 on n1: cores $(awk '/^Cpus_allowed_list/ { print $2 }' /proc/self/status), GPU 1 of 0,1 00000000:01:00.0" \
    study 1 2 env SLURMD_NODENAME=n1 RANKS_SEE="0,1 0,1" "$script" matrices
  ! grep -q WARNING "$work/said" || fail "$job: a warning without a reason: $(cat "$work/said")"
  expect 0 "GPU 1 of 1 00000000:01:00.0 $warning" study 1 2 env SLURMD_NODENAME=n1 RANKS_SEE="0 1" "$script" matrices
  [ "$(grep -c WARNING "$work/said")" -eq 2 ] || fail "$job: one warning a rank: $(cat "$work/said")"
  sed -n '/^show_rank()/,/^}/p' "$script" > "$work/$job"
  cmp -s "$work/$job" "$work/solve" || fail "$job.slurm has another show_rank than solve.slurm"
done

# A start that goes on from the x of the one before drops the initial guess that was given: an option comes once.
fake bin/srun 'echo "$*"'
for guess in "--initial-guess mine.h5" "--initial-guess=mine.h5"; do
  rm -rf "$work/solve-7"
  expect 0 "shardmat solve bar.h5 --rtol 1e-9 $guess --max-iterations 9 --output" study 1 2 env SLURM_JOB_ID=7 \
    "$root/deploy/slurm/solve.slurm" bar.h5 --rtol 1e-9 $guess --max-iterations 9
  echo x > "$work/solve-7/x.h5"
  expect 0 "shardmat solve bar.h5 --rtol 1e-9 --max-iterations 9 --initial-guess solve-7/start.h5 --output" study 1 2 env \
    SLURM_JOB_ID=7 "$root/deploy/slurm/solve.slurm" bar.h5 --rtol 1e-9 $guess --max-iterations 9
done

# A rank that a signal ended is named, except by the signals that all ranks get.
fake bin/scancel 'echo "scancel $*"'
sed -n '/^run_rank()/,/^}/p' "$root/deploy/slurm/solve.slurm" > "$work/run_rank"
for ended in "KILL 137 1 1" "USR1 138 0 1" "TERM 143 0 0"; do
  read -r signal code named cancelled <<< "$ended"
  expect "$code" "end" env SLURM_PROCID=1 SLURMD_NODENAME=n1 SLURM_JOB_ID=7 SLURM_STEP_ID=0 bash -c \
    ". '$work/run_rank'; echo end; run_rank bash -c 'trap - USR1 TERM; kill -$signal \$\$'"
  [ "$(grep -c 'was ended by signal' "$work/said")" -eq "$named" ] || fail "a rank that SIG$signal ended: $(cat "$work/said")"
  [ "$(grep -c 'scancel --signal=KILL 7.0' "$work/said")" -eq "$cancelled" ] || fail "after SIG$signal: $(cat "$work/said")"
done

# The sockets of the service lie in its folder.
deep=$work/$(printf 'folder%.0s' {1..12})
mkdir "$deep"
expect 2 "is too long for the sockets in it: submit from a folder whose path has at most 80 bytes" env --chdir="$deep" SLURM_JOB_ID=7 \
  SLURM_JOB_NUM_NODES=1 SLURM_NTASKS_PER_NODE=1 SLURM_CPUS_PER_TASK=1 "$root/deploy/slurm/serve.slurm" matrices

# What is uninstalled ends at the prefix, which is the user's unless it is named after Shardmat.
uninstall() {  # PREFIX: what is left of it and above
  mkdir -p "$work/place/$1/bin" "$work/place/$1/share/shardmat/deep"
  touch "$work/place/$1/bin/shardmat" "$work/place/$1/share/shardmat/deep/page"
  printf '%s\n' "$work/place/$1/bin/shardmat" "$work/place/$1/share/shardmat/deep/page" > "$work/manifest"
  cmake -D MANIFEST="$work/manifest" -P "$root/deploy/cmake/uninstall.cmake" > "$work/said" 2>&1 || cat "$work/said"
  (cd "$work" && { find place 2> /dev/null || true; } | sort | xargs)
}
if command -v cmake > /dev/null; then
  for case in "opt/shardmat place place/opt" "home/.local place place/home place/home/.local"; do
    left=$(uninstall "${case%% *}")
    [ "$left" = "${case#* }" ] || fail "uninstalling from ${case%% *} leaves $left"
    rm -rf "$work/place"
  done
else
  echo "without uninstalling: no cmake here"
fi

# The image takes from the first stage what Shardmat has installed, not all of /usr/local, where CUDA may lie.
folder=$root/deploy/container
! grep -E '^(COPY --from|RUN)|^    /' "$folder/Containerfile" "$folder/shardmat.def" | grep /usr/local ||
  fail "the image takes others' programs from /usr/local"
[ "$(grep -c '^COPY --from=build /opt/shardmat /opt/shardmat$' "$folder/Containerfile")" -eq 1 ] || fail "what is copied into the image"
if command -v dpkg > /dev/null; then
  mkdir -p "$work/prefix/bin"
  cp "$(readlink -f /bin/true)" "$work/prefix/bin/shardmat"
  "$folder/install.sh" list "$work/prefix" || fail "the list of the image's packages"
  grep -qx libc6 "$work/prefix/share/shardmat/container/packages" || fail "the image's packages lack libc6"
else
  echo "without the list of the image's packages: no dpkg here"
fi
expect 0 "shardmat (1000)." "$folder/install.sh" --help

# Only 2 and 3 ranks fit on three GPUs, 3 and 4 on what passes for two hosts. The programs lie anywhere under DIR, whose name
# may hold a space.
settings='P2P=${NCCL_P2P_DISABLE:-0} HOSTS=${SHARDMAT_TEST_HOSTS_OF:-0} WIN=${NCCL_WIN_ENABLE:-1} LOADED=$LD_PRELOAD'
record='echo "$(basename "$0") $* '"$settings"'" >> "$CALLS"'
fake bin/mpirun "$record"'; shift 2; exec "$@"'
fake "pre built/comm_test" "$record"
fake "pre built/kernels/kernels_test" "$record"
fake "pre built/runtime_matrix_test" "$record"
for name in batched context eigen least_squares maps run service solvers transposed_product; do fake "pre built/runtime/runtime_${name}_test" "$record"; done
ln -s "$(ldd /bin/sh | grep -o '/.*libc\.so[^ ]*')" "$work/pre built/libnvlink_between_hosts.so"
expect 0 "12 passed, 0 failed" "$root/tests/run.sh" --prebuilt "$work/pre built" --label gpu
[ "$(grep -c -- '_test --gtest_filter=Gpu\* --gtest_brief=1' "$CALLS")" -eq 12 ] || fail "gpu: $(cat "$CALLS")"
rm "$CALLS"
expect 0 "99 passed, 0 failed" "$root/tests/run.sh" --prebuilt "$work/pre built" --label multigpu
[ "$(grep -c '^mpirun -n [23] .*_test --gtest_filter=MultiGpu\*' "$CALLS")" -eq 77 ] || fail "multigpu: $(cat "$CALLS")"
[ "$(grep -c '^mpirun .* P2P=1 HOSTS=0 WIN=1 LOADED=$' "$CALLS")" -eq 22 ] || fail "sockets: $(cat "$CALLS")"
[ "$(grep -c '^mpirun -n [34] .* P2P=0 HOSTS=2 WIN=1 LOADED=$' "$CALLS")" -eq 22 ] || fail "hosts: $(cat "$CALLS")"
[ "$(grep -c '^mpirun -n [34] .* P2P=0 HOSTS=2 WIN=1 LOADED=libnvlink_between_hosts.so$' "$CALLS")" -eq 22 ] ||
  fail "hosts by NVLink: $(cat "$CALLS")"
[ "$(grep -c '^mpirun -n 2 .* P2P=0 HOSTS=0 WIN=0 LOADED=$' "$CALLS")" -eq 11 ] || fail "windows: $(cat "$CALLS")"
fake "pre built/comm_test" 'exit 1'
expect 1 "11 passed, 1 failed" "$root/tests/run.sh" --prebuilt "$work/pre built" --label gpu
rm "$work/pre built/runtime_matrix_test"
expect 1 "there is no runtime_matrix_test" "$root/tests/run.sh" --prebuilt "$work/pre built" --label gpu
# Those are all programs with such suites.
declared=$(sed -nE 's/^shardmat_test\(NAME (\w+) GPU .*/\1/p; s/^runtime_test\((\w+) GPU .*/runtime_\1_test/p' "$root"/tests/*/CMakeLists.txt | sort)
listed=$(sed -n '/^gpu_programs="/,/"$/p' "$root/tests/run.sh" | grep -o '[a-z_]*_test' | sort)
[ "$declared" = "$listed" ] || fail "gpu_programs of run.sh: $listed, but with GPU are declared: $declared"
fake bin/nvidia-smi 'exit 9'
expect 4 "no GPU here" "$root/tests/run.sh" --prebuilt "$work/pre built" --label gpu

# --only and --label build the files that the lines of the chosen tests name, and run these tests.
tree="$work/build tree"
mkdir -p "$tree/tests"
touch "$tree/build.ninja"
cat > "$tree/tests/CTestTestfile.cmake" << END
add_test([=[cli_a]=] "/usr/bin/python3" "/sources/test_a.py")
set_tests_properties([=[cli_a]=] PROPERTIES  ENVIRONMENT "TEST_PROGRAM=$tree/tools/shardmat;TEST_LIBRARY=$tree/lib.so" LABELS "cli")
add_test([=[python_b]=] "/usr/bin/python3" "/sources/test_b.py")
set_tests_properties([=[python_b]=] PROPERTIES  ENVIRONMENT "PYTHONPATH=$tree/python" LABELS "cli")
add_test([=[package]=] "/sources/run.sh" "$tree")
END
fake bin/ninja 'case $* in *targets*)
  for file in lib.so tools/shardmat tools/other python/shardmat/native.so python/CMakeFiles/test.util; do echo "$file: RULE"; done
  echo "python: phony" ;;
esac'
fake bin/cmake 'echo "cmake ${*#*--parallel}"'
fake bin/ctest 'case $* in *-N*) for name in $FOUND; do echo "  Test  #1: $name"; done ;; *) echo "ctest $*" ;; esac'
chosen() {  # NAME OPTION…: what is built for this test
  FOUND=$1 "$root/tests/run.sh" --no-install --build "$tree" "${@:2}" 2>&1 | sed -n 's/^cmake .* --target //p' | tr ' ' '\n' | sort | xargs
}
[ "$(chosen cli_a --only cli)" = "lib.so tools/shardmat" ] || fail "needed by cli_a: $(chosen cli_a --only cli)"
[ "$(chosen python_b --label cli)" = python/shardmat/native.so ] || fail "needed by python_b: $(chosen python_b --label cli)"
[ "$(chosen package --only package)" = all ] || fail "needed by package: $(chosen package --only package)"
expect 0 "--no-tests=error -R cli_a -L ^smoke\$" env FOUND=cli_a "$root/tests/run.sh" --no-install --build "$tree" --only cli_a --label smoke
expect 2 "no test matches -R nothing" env FOUND= "$root/tests/run.sh" --no-install --build "$tree" --only nothing

[ $failures -eq 0 ]
