#!/bin/sh
# make.sh [DIR]: runs CalculiX (Debian: calculix-ccx, 2.20) on the inputs in this folder and writes its matrices to DIR, by
# default to this folder: .sti stiffness, .mas mass, .con conductivity, .sph specific heat, .dof node and degree of freedom
# of each row.
set -eu
inputs=$(cd "$(dirname "$0")" && pwd)
output=$(cd "${1:-$inputs}" && pwd)
command -v ccx > /dev/null || { echo "make.sh: no ccx; apt-get install calculix-ccx" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$inputs"/*.inp "$work"
cd "$work"
for job in prism plate rod; do
  ccx "$job" > "$job.log" || { cat "$job.log" >&2; exit 1; }
done
cp prism.sti prism.mas prism.dof plate.sti plate.dof rod.con rod.sph rod.dof "$output"
