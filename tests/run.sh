#!/usr/bin/env bash
# tests/run.sh [--only PATTERN] [--label smoke|fast|mpi|cli|fault|browser|gpu|multigpu|producers|slurm|container|packages|
#              operator|long] [--no-install] [--prefix DIR] [--build DIR] [--prebuilt DIR]
# Installs what is missing, builds, and runs every test that this machine can run.
# While you write code: `tests/run.sh --no-install --only PATTERN` builds what the tests need whose names match the regular
# expression, and runs these (`ctest --test-dir build -N` lists the names: kernels_test, runtime_maps_test_2, cli_multiply …).
# --label runs the tests of one label and builds what they need. smoke: some kernels, a product on two ranks, a request to the
# service. browser: pages in chromium, if it is there, and openapi.json; installs axe-core and a validator from npm. producers:
# also installs PETSc, dolfinx, hypre, Octave, FreeFEM and CalculiX, without which the tests that run them are skipped. slurm:
# also installs Slurm, and runs the jobs of deploy/slurm.
# container: also installs buildah and debootstrap, builds the image of deploy/container, and runs in it what
# deploy/kubernetes says (half an hour). packages: makes packages, and installs, uses and removes them in a fresh Debian.
# operator: runs each command of deploy/service/operations.md there. long: builds the mutation tests with sanitizers in DIR-fuzz
# and makes a million mutations (TEST_FUZZ_COUNT of each test), which takes about an hour. Without a label, as in CI, browser and
# the last five are left out.
# --prebuilt DIR runs the GPU tests of the programs found under DIR instead, without compiler or CTest (all, or those of
# --label gpu or multigpu).
set -euo pipefail

# The programs with suites named Gpu… or MultiGpu….
gpu_programs="kernels_test comm_test runtime_batched_test runtime_context_test runtime_eigen_test runtime_maps_test
  runtime_matrix_test runtime_run_test runtime_service_test runtime_solvers_test runtime_transposed_product_test
  runtime_least_squares_test"
label="" only="" install=1 prefix="" dir=build prebuilt=""
while [ $# -gt 0 ]; do
  case $1 in
    --label) label=${2:?--label wants a label}; shift 2 ;;
    --only) only=${2:?--only wants a pattern}; shift 2 ;;
    --no-install) install=0; shift ;;
    --prefix) prefix=$(realpath "${2:?--prefix wants a directory}"); shift 2 ;;
    --build) dir=$(realpath -m "${2:?--build wants a directory}"); shift 2 ;;
    --prebuilt) prebuilt=$(realpath "${2:?--prebuilt wants a directory}"); shift 2 ;;
    -h | --help) sed -n '2,17p' "$0"; exit 0 ;;
    *) echo "run.sh: unknown option $1; see tests/run.sh --help" >&2; exit 2 ;;
  esac
done
case $label in
  "" | smoke | fast | mpi | cli | fault | browser | gpu | multigpu | producers | slurm | container | packages | operator | long) ;;
  *) echo "run.sh: there is no label $label; see tests/run.sh --help" >&2; exit 2 ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. deploy/environment.sh
export OMPI_MCA_odls_base_sigkill_timeout=1  # many tests lose ranks on purpose; mpirun sleeps so long twice
if [ -n "$prefix" ]; then export LD_LIBRARY_PATH="$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; fi
took() { printf '%d min %d s' $((SECONDS / 60)) $((SECONDS % 60)); }

# run_prebuilt DIR: the Gpu suites of the test programs, then the MultiGpu suites as multigpu_runs.txt says.
run_prebuilt() {
  local gpus preload library run ranks needed filter variables settings name passed=0 failed=0
  gpus=$(deploy/gpu-count.sh)
  if [ "$gpus" -eq 0 ]; then echo "run.sh: no GPU here (nvidia-smi lists none)" >&2; return 4; fi
  run_program() {  # DIR NAME FILTER [MPIRUN…]
    local program
    program=$(find "$1" -name "$2" -type f -perm -u+x | head -n 1)
    echo "-- ${*:4} $2 --gtest_filter=$3"
    if [ -n "$program" ] && "${@:4}" "$program" "--gtest_filter=$3" --gtest_brief=1; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
      echo "-- FAILED${program:+ }${program:-: there is no $2 under $1}"
    fi
  }
  run_c_program() {  # DIR NAME [MPIRUN…]: without GoogleTest; 77 says that something is missing here
    local program status=0
    program=$(find "$1" -name "$2" -type f -perm -u+x | head -n 1)
    echo "-- ${*:3} $2"
    if [ -z "$program" ]; then
      echo "-- left out: there is no $2 under $1"
      return
    fi
    "${@:3}" "$program" || status=$?
    case $status in
      0) passed=$((passed + 1)) ;;
      77) echo "-- left out, as it says" ;;
      *) failed=$((failed + 1)); echo "-- FAILED $program" ;;
    esac
  }
  if [ "$label" != multigpu ]; then
    for name in $gpu_programs; do run_program "$1" $name 'Gpu*'; done
    library=$(find "$1" -name libshardmat.so.0 -printf %h -quit)
    if [ -n "$library" ]; then export LD_LIBRARY_PATH="$library${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; fi
    run_c_program "$1" c_gpu_test
    run_c_program "$1" c_shared_gpu_test mpirun -n 3 < /dev/null
  fi
  if [ "$label" != gpu ]; then
    preload=$(find "$1" -name libnvlink_between_hosts.so -printf %h -quit)
    if [ -n "$preload" ]; then export LD_LIBRARY_PATH="$preload${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; fi
    while read -r run ranks needed filter variables; do
      if [[ -z $run || $run = "#"* ]] || [ "$needed" -gt "$gpus" ]; then continue; fi
      if [[ $variables = *nvlink_between_hosts* && -z $preload ]]; then
        echo "-- $run left out: there is no libnvlink_between_hosts.so under $1"
        continue
      fi
      read -ra settings <<< "$variables"
      for name in ${gpu_programs#kernels_test}; do
        run_program "$1" $name "$filter" env "${settings[@]}" mpirun -n "$ranks" < /dev/null
      done
    done < tests/multigpu_runs.txt
  fi
  echo "$passed passed, $failed failed in $(took)"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}

if [ -n "$prebuilt" ]; then
  run_prebuilt "$prebuilt"
  exit
fi

if [ "$install" = 1 ]; then
  echo "== 1. Dependencies"
  wanted=(--tests)
  if [ "$label" = producers ]; then wanted+=(--producers); fi
  case $label in slurm | container | packages | operator) wanted+=(--deploy) ;; esac
  deploy/install-dependencies.sh "${wanted[@]}" ${prefix:+--prefix "$prefix"}
fi
if [ "$label" = long ]; then
  echo "== 2. Build with sanitizers"
  cmake -S . -B "$dir-fuzz" -DSHARDMAT_FUZZ=ON -DSHARDMAT_CUDA=OFF -DSHARDMAT_TESTS=ON ${prefix:+-DCMAKE_PREFIX_PATH="$prefix"}
  cmake --build "$dir-fuzz" --parallel "$(nproc)" --target fuzz_tests
  echo "== 3. Mutations"
  TEST_FUZZ_COUNT=${TEST_FUZZ_COUNT:-65000} ctest --test-dir "$dir-fuzz" -L '^long$' ${only:+-R "$only"} --parallel "$(nproc)" --verbose --no-tests=error
  echo "All mutations were read or refused; $(took) with the build"
  exit
fi
from_npm() {  # VARIABLE PACKAGE@VERSION FILE: exports the path of a file of the package, which is installed below the build
  local folder
  folder=$(realpath -m "$dir")/npm/$1
  if [ -n "${!1:-}" ]; then return; fi
  if [ ! -e "$folder/node_modules/$3" ] && [ "$install" = 1 ]; then
    npm install --prefix "$folder" --no-save --silent "$2" > /dev/null 2>&1 || true
  fi
  if [ -e "$folder/node_modules/$3" ]; then
    export "$1=$folder/node_modules/$3"
  else
    echo "   without $2: npm install did not bring it. $1 names one that you have"
  fi
}
if [ "$label" = browser ]; then
  from_npm TEST_AXE axe-core@4.14.1 axe-core/axe.min.js
  from_npm TEST_OPENAPI_VALIDATOR @seriousme/openapi-schema-validator@2.11.0 @seriousme/openapi-schema-validator/bin/validate-api-cli.js
fi
echo "== 2. Build"
dir=$(realpath -m "$dir") chosen=(${only:+-R "$only"} ${label:+-L "^$label\$"})
if [ ${#chosen[@]} -eq 0 ]; then
  echo "   (some minutes on two cores, more with CUDA)"
  deploy/build.sh --build "$dir" --tests ${prefix:+--prefix "$prefix"}
  chosen=(-LE '^(smoke|browser|slurm|container|packages|operator)$')  # other tests repeat smoke; the others take long
else
  if [ -e "$dir/tests/CTestTestfile.cmake" ] && [ -e "$dir/build.ninja" ]; then
    ninja -C "$dir" build.ninja > "$dir/build.log" 2>&1 || { cat "$dir/build.log" >&2; exit 1; }
  else
    deploy/build.sh --configure --build "$dir" --tests ${prefix:+--prefix "$prefix"}
  fi
  names=$(ctest --test-dir "$dir" -N "${chosen[@]}" | sed -nE 's/^ +Test +#[0-9]+: //p')
  if [ -z "$names" ]; then
    echo "run.sh: no test matches ${chosen[*]}; ctest --test-dir $dir -N lists the names" >&2
    exit 2
  fi
  mapfile -t needed < <(python3 tests/support/needed_files.py "$dir" <<< "$names")
  if [ ${#needed[@]} -gt 0 ]; then cmake --build "$dir" --parallel "$(nproc)" --target "${needed[@]}"; fi
fi
echo "== 3. Tests"  # one more at a time than cores: most tests wait for programs to start, or for deadlines
status=0
GTEST_BRIEF=1 ctest --test-dir "$dir" --parallel $(($(nproc) + 1)) --output-on-failure --no-tests=error "${chosen[@]}" |
  grep --line-buffered -vE '^ +Start +[0-9]+:|^Internal ctest|^Test project' || status=$?
if [ $status -ne 0 ]; then echo "Not all tests passed; $(took)"; exit $status; fi
if [ -n "$only$label" ]; then echo "The chosen tests passed; $(took) with the build"; exit; fi
echo "All tests passed; $(took) with the build"
