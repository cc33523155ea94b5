#!/usr/bin/env bash
# install.sh build SOURCES PREFIX: in an image of Debian or Ubuntu, as root: installs compilers and libraries, builds Shardmat
#     without tests, installs it to PREFIX, and lists the packages that it needs. PREFIX is a folder of its own: others' programs
#     in it would be listed, too.
# install.sh list PREFIX: writes this list, PREFIX/share/shardmat/container/packages.
# install.sh run PREFIX: installs the packages of the list, mpirun and ssh, links the programs into /usr/local/bin, and makes the user
#     shardmat (1000).
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive LC_ALL=C

# The packages of the shared libraries that the programs and libraries under PREFIX load.
list() {
  local folder=$1/share/shardmat/container file library
  mkdir -p "$folder"
  find "$1" -type f '(' -perm -u+x -o -name '*.so*' ')' -exec sh -c 'file=$1; head -c 4 "$file" | grep -q ELF && ldd "$file"' sh {} \; |
    awk '/=> \// { print $3 }' | sort -u | while read -r library; do
      file=$(realpath "$library")
      if [[ $file = "$1"/* ]]; then continue; fi
      dpkg -S "$file" 2> /dev/null || dpkg -S "${file#/usr}" 2> /dev/null ||
        { echo "install.sh: no package has $library" >&2; exit 4; }
    done | cut -d: -f1 | sort -u > "$folder/packages"
  [ -s "$folder/packages" ] || { echo "install.sh: nothing under $1 loads a library" >&2; exit 4; }
}

build() {
  local sources=$1 prefix=$2
  apt-get update
  "$sources/deploy/install-dependencies.sh"
  "$sources/deploy/build.sh" --build /tmp/build
  cmake --install /tmp/build --prefix "$prefix"
  rm -rf /tmp/build
  list "$prefix"
}

run() {
  local prefix=$1
  apt-get update
  mapfile -t packages < "$prefix/share/shardmat/container/packages"
  apt-get install -y --no-install-recommends "${packages[@]}" openmpi-bin openssh-client openssh-server
  apt-get clean
  rm -rf /var/lib/apt/lists/*
  ln -sf "$prefix"/bin/* /usr/local/bin
  echo "$prefix/lib" > /etc/ld.so.conf.d/shardmat.conf
  ldconfig
  local other
  if other=$(getent passwd 1000 | cut -d: -f1) && [ -n "$other" ]; then userdel --remove "$other" 2> /dev/null || true; fi  # ubuntu
  useradd --uid 1000 --user-group --create-home --shell /bin/bash shardmat
  # mpirun reaches ranks in other containers by ssh, as the MPI operator of Kubernetes wants it: a port that needs no root, keys
  # that are mounted, and a root that is only read.
  mkdir -p /home/shardmat/.ssh
  rm -f /etc/ssh/ssh_host_*
  printf '%s\n' 'Port 2222' 'HostKey /home/shardmat/.ssh/id_rsa' 'PidFile none' 'StrictModes no' 'UsePAM no' \
    'PasswordAuthentication no' > /etc/ssh/sshd_shardmat
  printf '%s\n' 'Host *' '  Port 2222' '  StrictHostKeyChecking no' '  UserKnownHostsFile /dev/null' '  LogLevel ERROR' \
    > /etc/ssh/ssh_config.d/shardmat.conf
}

case ${1:-} in
  build) build "${2:?name the sources}" "${3:?name the prefix}" ;;
  list) list "$(realpath "${2:?name the prefix}")" ;;
  run) run "${2:?name the prefix}" ;;
  -h | --help) sed -n '2,7p' "$0" ;;
  *) echo "install.sh: unknown option ${1:-}; there are build SOURCES PREFIX, list PREFIX and run PREFIX" >&2; exit 2 ;;
esac
