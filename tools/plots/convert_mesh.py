#!/usr/bin/env python3
"""Turns a mesh of tetrahedra in Gmsh's or another format into the HDF5 file that `shardmat generate --mesh` reads.

The output has /points (f64, [n, 3]) and /tetrahedra (i32, [m, 4], 0-based). Quadratic tetrahedra keep their four vertices
only; other cells and points that no tetrahedron uses are dropped. Every format that meshio reads is accepted: Gmsh .msh,
VTK .vtk/.vtu, Abaqus .inp, Nastran .bdf, Medit .mesh, TetGen .node, XDMF ...
"""
import argparse
import os
import sys

import interpreter

EXAMPLE = """example:
  tools/plots/convert_mesh.py part.msh part.h5
  shardmat generate elasticity --mesh part.h5 --degree 2 --clamp 0.03 part-matrix.h5

needs the Python packages meshio, h5py and numpy (Debian: python3-meshio python3-h5py python3-numpy)"""

USAGE, INPUT = 2, 3  # exit codes as of shardmat


def fail(code, message):
    print(f"convert_mesh.py: {message}", file=sys.stderr)
    sys.exit(code)


def import_packages():
    interpreter.require(["meshio", "h5py", "numpy"], lambda message: fail(USAGE, message))
    import h5py
    import meshio
    import numpy
    return meshio, h5py, numpy


def read_tetrahedra(meshio, np, path):
    """Points and the vertices of all tetrahedra in the file."""
    if not os.path.isfile(path):
        fail(INPUT, f"{path}: there is no such file")
    try:
        mesh = meshio.read(path)
    except SystemExit:
        fail(INPUT, f"{path}: meshio cannot read this file")
    except Exception as error:  # meshio's readers raise whatever their parsing meets
        fail(INPUT, f"{path}: meshio cannot read this file: {error or type(error).__name__}")
    blocks = [block.data[:, :4] for block in mesh.cells if block.type in ("tetra", "tetra10")]
    if not blocks or sum(map(len, blocks)) == 0:
        found = ", ".join(sorted({block.type for block in mesh.cells})) or "no cells"
        fail(INPUT, f"{path}: there are no tetrahedra in it ({found}); mesh the volume, e.g. gmsh -3 part.geo")
    points = np.asarray(mesh.points, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 3:
        fail(INPUT, f"{path}: the points have {points.shape[-1]} coordinates, not 3")
    tetrahedra = np.concatenate(blocks).astype(np.int64)
    if tetrahedra.min() < 0 or tetrahedra.max() >= len(points):
        fail(INPUT, f"{path}: a tetrahedron has a vertex that is not among the {len(points)} points")
    return points, tetrahedra


def write_mesh(h5py, path, points, tetrahedra):
    """Under a temporary name first, so that a failure leaves no half file."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with h5py.File(temporary, "w") as file:
            file.create_dataset("points", data=points, compression="gzip", shuffle=True)
            file.create_dataset("tetrahedra", data=tetrahedra.astype("int32"), compression="gzip", shuffle=True)
        os.replace(temporary, path)
    except OSError as error:
        if os.path.exists(temporary):
            os.remove(temporary)
        fail(INPUT, f"cannot write {path}: {error}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, epilog=EXAMPLE,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", help="mesh file in any format that meshio reads")
    parser.add_argument("output", help="HDF5 file to write")
    arguments = parser.parse_args()
    meshio, h5py, np = import_packages()
    points, tetrahedra = read_tetrahedra(meshio, np, arguments.input)
    used, compact = np.unique(tetrahedra, return_inverse=True)
    write_mesh(h5py, arguments.output, points[used], compact.reshape(tetrahedra.shape))
    dropped = len(points) - len(used)
    print(f"{arguments.output}: {len(used)} points, {len(tetrahedra)} tetrahedra"
          + (f" ({dropped} unused points dropped)" if dropped else ""))


if __name__ == "__main__":
    main()
