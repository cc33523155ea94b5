#!/bin/sh
# Measures and draws the picture of README.md: convergence.sh PICTURE.svg, with shardmat in PATH. More words are
# options of `shardmat bench solve` in place of these: convergence.sh PICTURE.svg --ranks 2. The report is written beside the picture.
# Needs Python with h5py and matplotlib, and a build with PETSc (deploy/install-dependencies.sh --peers).
set -eu
picture=${1:?name a picture, as answers.svg}
shift
[ $# -gt 0 ] || set -- --ranks 2 --repetitions 2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
python=python3
"$python" -c "import h5py, matplotlib" 2> "$work/python" || python=/usr/bin/python3
"$python" "$here/../../tests/data/make_mesh.py" 40 20 20 "$work/box.h5"
shardmat bench solve elasticity:n=32,uniform,clamp=0.01 "elasticity:mesh=$work/box.h5,clamp=0.03" \
  elasticity:n=28,uniform,inclusions=1e4,clamp=0.01 elasticity:nx=251,ny=6,nz=6,uniform,clamp=0.01 poisson7:n=64,uniform \
  --preconditioner multigrid --max-iterations 2000 --rtol 1e-6 --timeout 1000 --json "${picture%.*}.json" "$@"
"$python" "$here/../plots/plot_answers.py" "${picture%.*}.json" --output "$picture" --titles "Elasticity, 32³ nodes" \
  "Elasticity, linear tetrahedra" "Elasticity, inclusions 1 : 10⁴" "Elasticity, beam 1 : 50" "Poisson, 7 points, 64³"
