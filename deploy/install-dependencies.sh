#!/usr/bin/env bash
# deploy/install-dependencies.sh [--prefix DIR] [--tests] [--peers] [--producers] [--deploy]
# Installs what is missing to build Shardmat (and, with --tests, to test it) on Debian 12 or Ubuntu 22.04/24.04. Looks for
# each thing first, also under DIR, and installs nothing that is there. Without root or network it lists the missing packages
# and ends with 4. CUDA and NCCL are used where found and never installed. --peers: also the libraries that
# `shardmat bench kernels --peers` compares with, as far as this release has them. --producers: PETSc, for which a plug-in is
# built, and dolfinx, hypre, Octave, FreeFEM and CalculiX, which tests run: 260 MB to load, 1.2 GB on the disk. --deploy: Slurm,
# buildah, debootstrap, lintian and Prometheus, with which the files of deploy/ are tested.
set -euo pipefail

prefix="" tests=no peers=no producers=no deploy=no
while [ $# -gt 0 ]; do
  case $1 in
    --prefix) prefix=${2:?--prefix wants a directory}; shift 2 ;;
    --tests) tests=yes; shift ;;
    --peers) peers=yes; shift ;;
    --producers) producers=yes; shift ;;
    --deploy) deploy=yes; shift ;;
    -h | --help) sed -n '2,8p' "$0"; exit 0 ;;
    *) echo "install-dependencies.sh: unknown option $1 (there are --prefix DIR, --tests, --peers, --producers and --deploy)" >&2; exit 2 ;;
  esac
done

has_command() { command -v "$1" > /dev/null; }
# has_header HEADER [DIR...]: can the preprocessor find it, under the prefix, DIR or where it looks by itself?
has_header() {
  local header=$1 dir flags=()
  shift
  for dir in ${prefix:+"$prefix/include"} "$@"; do flags+=(-I"$dir"); done
  has_command c++ && c++ -x c++ ${flags[@]+"${flags[@]}"} -E - > /dev/null 2>&1 <<< "#if !__has_include(<$header>)
#error missing
#endif"
}
has_builder() { has_command make || has_command ninja; }
has_hdf5() {
  has_header hdf5.h /usr/include/hdf5/openmpi /usr/include/hdf5/serial /usr/include/hdf5/mpich || has_command h5cc ||
    has_command h5pcc
}
has_python_headers() {
  local python
  for python in python3 /usr/bin/python3; do
    [ -f "$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))' 2> /dev/null)/Python.h" ] && return
  done
  return 1
}
has_file() { [ -e "$1" ]; }
has_petsc_tutorials() { compgen -G "/usr/share/petsc/*/share/petsc/examples/src/ksp/ksp/tutorials/ex2.c" > /dev/null; }
has_python_modules() {
  local python
  for python in python3 /usr/bin/python3; do "$python" -c "import $1" 2> /dev/null && return; done
  return 1
}

has_clang_format_14() {
  local formatter
  for formatter in clang-format-14 clang-format; do
    "$formatter" --version 2> /dev/null | grep -q "version 14\." && return
  done
  return 1
}

required=() optional=()
need() { "${@:2}" || required+=("$1"); }
want() { "${@:2}" || optional+=("$1"); }
need g++ has_command c++
need cmake has_command cmake
need make has_builder
need openmpi-bin has_command mpirun
need libopenmpi-dev has_command mpicxx
need libhdf5-dev has_hdf5
need libfmt-dev has_header fmt/format.h
need nlohmann-json3-dev has_header nlohmann/json.hpp
need libcli11-dev has_header CLI/CLI.hpp
need libboost-dev has_header boost/beast/version.hpp
need zlib1g-dev has_header zlib.h
want ninja-build has_command ninja
want curl has_command curl
want libfast-float-dev has_header fast_float/fast_float.h
want libzip-dev has_header zip.h
want libbz2-dev has_header bzlib.h
want liblzma-dev has_header lzma.h
want libzstd-dev has_header zstd.h
want libpng-dev has_header png.h
want libssl-dev has_header openssl/ssl.h
want libmetis-dev has_header metis.h
want libptscotch-dev has_header ptscotch.h /usr/include/scotch
want libmumps-dev has_header dmumps_c.h
want libeigen3-dev has_header Eigen/SparseCore /usr/include/eigen3
want pybind11-dev has_header pybind11/pybind11.h
want python3-dev has_python_headers
want python3-numpy has_python_modules numpy
if [ $tests = yes ]; then
  need libgtest-dev has_header gtest/gtest.h
  need python3 has_command python3
  need curl has_command curl
  need openssl has_command openssl
  need python3-h5py has_python_modules h5py
  need python3-scipy has_python_modules "numpy, scipy"
  want python3-mpi4py has_python_modules mpi4py
  want python3-meshio has_python_modules meshio
  want python3-matplotlib has_python_modules matplotlib
  want gfortran has_command gfortran
  want abigail-tools has_command abidw
  want pkg-config has_command pkg-config
  want clang-format-14 has_clang_format_14
  want git has_command git
  want logrotate has_file /usr/sbin/logrotate
  want python3-yaml has_python_modules yaml
  want python3-jsonschema has_python_modules "h5py, jsonschema"  # for the Python that runs the tests
fi
if [ $peers = yes ]; then
  want pkg-config has_command pkg-config
  want libdune-istl-dev has_header dune/istl/bcrsmatrix.hh
  want petsc-dev has_header petscmat.h /usr/lib/petsc/include
  want librsb-dev has_header rsb.h
  want python3-scipy has_python_modules "numpy, scipy"
  want python3-h5py has_python_modules h5py
  want python3-slepc4py has_python_modules slepc4py
fi
if [ $producers = yes ]; then
  want pkg-config has_command pkg-config
  want petsc-dev has_header petscmat.h /usr/lib/petsc/include
  want libpetsc3.18-dev-examples has_petsc_tutorials
  want python3-dolfinx has_python_modules dolfinx
  want calculix-ccx has_command ccx
  want libhypre-dev has_header HYPRE.h /usr/include/hypre
  want octave has_command octave
  want freefem++ has_command FreeFem++
fi
if [ $deploy = yes ]; then
  PATH=$PATH:/usr/sbin:/sbin
  want slurmctld has_command slurmctld
  want slurmd has_command slurmd
  want slurm-client has_command srun
  want slurm-wlm-basic-plugins has_file /usr/lib/*/slurm-wlm/mpi_pmix.so
  want debootstrap has_command debootstrap
  want dpkg-dev has_command dpkg-shlibdeps
  want lintian has_command lintian
  want buildah has_command buildah
  want crun has_command crun
  want iproute2 has_command ip
  want openssh-client has_command ssh-keygen
  want systemd has_command systemd-analyze
  want prometheus has_command promtool
fi
[ $((${#required[@]} + ${#optional[@]})) -gt 0 ] || exit 0

log=$(mktemp)
trap 'rm -f "$log"' EXIT
as_root=()
can_install() {
  has_command apt-get || return 1
  [ "$(id -u)" -eq 0 ] && return
  as_root=(sudo -n)
  has_command sudo && sudo -n true 2> /dev/null
}
apt() { ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get "$@" > "$log" 2>&1; }
# What the lists of this release know of, of the packages that are only wanted.
known() {
  local package
  for package in "$@"; do if apt-cache show "$package" > /dev/null 2>&1; then echo "$package"; fi; done
}
install_all() {
  local wanted
  apt update || return
  mapfile -t wanted < <(known ${optional[@]+"${optional[@]}"})
  [ $((${#required[@]} + ${#wanted[@]})) -gt 0 ] || return
  echo "Installing ${required[*]-} ${wanted[*]-}"
  apt install -y --no-install-recommends ${required[@]+"${required[@]}"} ${wanted[@]+"${wanted[@]}"}
}

if can_install; then
  if install_all; then exit 0; fi
  if [ ${#required[@]} -gt 0 ]; then tail -n 5 "$log" >&2; fi
fi
if [ ${#required[@]} -gt 0 ]; then
  echo "Missing, and not installable from here: ${required[*]}" >&2
  echo "Install them (apt-get install ${required[*]} ${optional[*]-}) or give --prefix DIR with these libraries under DIR/include and DIR/lib." >&2
  exit 4
fi
echo "Going on without ${optional[*]} (optional)"
