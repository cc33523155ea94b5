#!/bin/sh
# Makes the test matrices with FreeFEM (Debian: freefem++ or freefem, 4.11; python3-numpy, python3-h5py):
#   elasticity_bar.mtx.gz  3-D elasticity, linear tetrahedra, clamped at one end: symmetric to roundoff,
#                         identity rows, stored zeros
#   convection.mtx.gz      2-D diffusion and convection, quadratic triangles: not symmetric
#   stokes.mtx.gz          3-D Stokes, quadratic velocity and linear pressure: saddle point, no diagonal for the pressure
# and box.h5, a mesh of 432 tetrahedra. Other versions may number differently; the files are what tests rely on.
set -eu
data=$(cd "$(dirname "$0")" && pwd)
python=$(for p in python3 /usr/bin/python3; do "$p" -c 'import numpy, h5py' 2>/dev/null && echo "$p" && break; done) || true
[ -n "$python" ] || { echo "make_matrices.sh: no python3 with numpy and h5py; apt-get install python3-numpy python3-h5py" >&2; exit 2; }
command -v FreeFem++ >/dev/null || { echo "make_matrices.sh: no FreeFem++; apt-get install freefem++" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

to_matrix_market() {  # NAME: NAME.txt as FreeFEM prints a matrix -> NAME.mtx.gz
  "$python" - "$1" "$data/$1.mtx.gz" <<'END'
import gzip, sys
name, path = sys.argv[1:]
lines = [line.split() for line in open(name + ".txt") if line.strip() and not line.startswith("#")]
rows, cols, nnz = map(int, lines[0][:3])
entries = sorted((int(i), int(j), float(v)) for i, j, v in lines[1:])
assert len(entries) == nnz
text = "%%MatrixMarket matrix coordinate real general\n"
text += f"% {name}.edp, FreeFEM\n{rows} {cols} {len(entries)}\n"
text += "".join(f"{i + 1} {j + 1} {v!r}\n" for i, j, v in entries)
with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
    packed.write(text.encode())
print(f"{name}: {rows} rows, {nnz} entries")
END
}

"$python" "$data/make_mesh.py" 8 3 3 "$data/box.h5"
"$python" "$data/make_mesh.py" 12 4 4 box.mesh
FreeFem++ -nw -v 0 "$data/elasticity_bar.edp" && to_matrix_market elasticity_bar
"$python" "$data/make_mesh.py" 3 3 2 box.mesh
FreeFem++ -nw -v 0 "$data/stokes.edp" && to_matrix_market stokes
FreeFem++ -nw -v 0 "$data/convection.edp" && to_matrix_market convection
