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
export PYTHONDONTWRITEBYTECODE=1
mpirun -n 1 "$work/build/consumer"
mpirun -n 3 "$work/build/consumer"
"$work/build/consumer_c"
mpirun -n 3 "$work/build/newton" > "$work/newton.txt"
"$work/build/c_interface"
if [ -x "$work/build/fortran_interface" ]; then "$work/build/fortran_interface"; fi
"$work/build/own_folders"
"$work/build/own_folders_c"
"$work/prefix/bin/shardmat" --version
for schema in "$here"/../../tools/schemas/*.schema.json; do
  cmp "$schema" "$work/prefix/share/shardmat/schemas/$(basename "$schema")"
done

# Projects without C++.
if [[ $* != *-fsanitize=* ]]; then
  languages=(c)
  if command -v gfortran > /dev/null; then languages+=(fortran); fi
  for language in "${languages[@]}"; do
    quietly cmake -S "$here/${language}_only" -B "$work/${language}_only" -DShardmat_DIR="$(dirname "$config")"
    quietly cmake --build "$work/${language}_only"
    "$work/${language}_only/${language}_only"
  done
fi

# The C interface by pkg-config, and the Python package, where they are installed.
pc=$(find "$work/prefix" -name shardmat.pc)
if command -v pkg-config > /dev/null && [[ $* != *-fsanitize=* ]]; then
  export PKG_CONFIG_PATH=${pc%/*}
  libdir=$(pkg-config --variable=libdir shardmat)
  read -ra flags <<< "$(pkg-config --cflags --libs shardmat)"
  quietly cc "$here/c_interface.c" -o "$work/by_pkg_config" "${flags[@]}" "-Wl,-rpath,$libdir"
  "$work/by_pkg_config"
  if command -v gfortran > /dev/null; then
    read -ra modules <<< "$(pkg-config --variable=fortran shardmat)"
    quietly gfortran -std=f2018 -Wall -Wextra -Werror -J "$work" "${modules[@]}" "$here/fortran_interface.f90" \
      -o "$work/fortran_by_pkg_config" "${flags[@]}" "-Wl,-rpath,$libdir"
    "$work/fortran_by_pkg_config"
  fi
fi
package=$(find "$work/prefix" -name '_shardmat*.so')
if [ -n "$package" ]; then
  version=${package##*/python}
  for python in "python${version%%/*}" "/usr/bin/python${version%%/*}"; do
    if "$python" -c 'import numpy' 2> /dev/null; then break; fi
  done
  (cd / && PYTHONPATH=${package%/shardmat/*} "$python" -c "
import numpy, shardmat
a = shardmat.Matrix.from_file('poisson7:n=4')
print('the Python package multiplies', a, float(numpy.sum(a @ numpy.ones(64))))")
  if "$python" -c 'import scipy' 2> /dev/null; then
    PYTHONPATH=${package%/shardmat/*} "$python" "$here/newton.py" > "$work/newton_python.txt"
    "$python" "$here/newton_check.py" "$work/newton.txt" "$work/newton_python.txt"
    PYTHONPATH=${package%/shardmat/*} "$python" "$here/gradient.py"
  fi
fi

# Every script is installed and runs from there, also where the first python3 on the PATH has no packages.
scripts=$work/prefix/share/shardmat
mkdir -p "$work/venv/bin"
ln -s /usr/bin/python3 "$work/venv/bin/python3"
printf 'home = /usr/bin\ninclude-system-site-packages = false\n' > "$work/venv/pyvenv.cfg"
export PATH=$work/venv/bin:$PATH
for script in "$here"/../../tools/plots/*.py; do
  name=$(basename "$script")
  case $name in
    plots.py | interpreter.py | page_style.py) [ -f "$scripts/$name" ] || { echo "$name is not installed"; exit 1; } ;;
    *) quietly "$scripts/$name" --help ;;
  esac
done
if /usr/bin/python3 -c 'import matplotlib' 2> /dev/null; then
  "$work/prefix/bin/shardmat" info poisson7:n=4 --json > "$work/info.json"
  quietly "$scripts/plot_matrix.py" "$work/info.json" --output "$work/info.svg"
  quietly "$work/prefix/bin/shardmat" bench spmm poisson7:n=4 --backend host --rhs 2 --repetitions 1 --json "$work/spmm.json" \
    --plot "$work/spmm.svg"
  quietly "$scripts/plot_spmm.py" "$work/spmm.json" --output "$work/again.svg"
  cmp "$work/spmm.svg" "$work/again.svg"
fi
echo "the scripts run where they are installed"

quietly cmake -D MANIFEST="$build_dir/install_manifest.txt" -P "$here/../../deploy/cmake/uninstall.cmake"
if [ -n "$(find "$work/prefix" -mindepth 1)" ]; then
  echo "uninstalling leaves:"
  find "$work/prefix"
  exit 1
fi
