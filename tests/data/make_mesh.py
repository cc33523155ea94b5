#!/usr/bin/env python3
"""Makes the small meshes of tetrahedra of the tests: a box whose cells are cut in six (Kuhn), inner points moved at random.

make_mesh.py CELLS_X CELLS_Y CELLS_Z OUTPUT writes OUTPUT.mesh (Medit text with boundary triangles, label 1 at x = 0 and 2
elsewhere, for FreeFEM) or OUTPUT.h5 (/points float32, /tetrahedra int32 with half of the tetrahedra inverted and points in
random order, as CAD tools leave them). tests/data/box.h5 is `make_mesh.py 8 3 3 box.h5`.
"""
import itertools
import sys

import numpy as np


def box(cells):
    """Points [n, 3] with unit spacing in x-fastest order, and positively oriented tetrahedra [m, 4]."""
    nodes = np.array(cells) + 1
    z, y, x = np.meshgrid(*(np.arange(k) for k in nodes[::-1]), indexing="ij")
    points = np.stack([x, y, z], axis=-1).reshape(-1, 3).astype(float)
    stride = np.array([1, nodes[0], nodes[0] * nodes[1]])
    corner = (points[np.all(points < cells, axis=1)] @ stride).astype(int)
    tetrahedra = []
    for path in itertools.permutations(range(3)):
        tet = corner[:, None] + np.concatenate([[0], np.cumsum(stride[list(path)])])
        sign = np.linalg.det(np.eye(3)[list(path)])
        tetrahedra.append(tet if sign > 0 else tet[:, [0, 1, 3, 2]])
    return points, np.concatenate(tetrahedra)


def boundary(points, tetrahedra):
    """Triangles that belong to one tetrahedron only, turned outwards."""
    faces = np.concatenate([tetrahedra[:, f] for f in ([1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1])])
    _, first, count = np.unique(np.sort(faces, axis=1), axis=0, return_index=True, return_counts=True)
    triangles = faces[first[count == 1]]
    return triangles, np.where(np.all(points[triangles, 0] == 0, axis=1), 1, 2)


def write_medit(path, points, tetrahedra):
    triangles, labels = boundary(points, tetrahedra)
    with open(path, "w") as file:
        print("MeshVersionFormatted 2\nDimension 3", file=file)
        print("Vertices", len(points), sep="\n", file=file)
        for p in points:
            print(*(f"{x:.17g}" for x in p), 0, file=file)
        print("Tetrahedra", len(tetrahedra), sep="\n", file=file)
        for t in tetrahedra + 1:
            print(*t, 0, file=file)
        print("Triangles", len(triangles), sep="\n", file=file)
        for t, label in zip(triangles + 1, labels):
            print(*t, label, file=file)
        print("End", file=file)


def write_hdf5(path, points, tetrahedra, random):
    import h5py
    order = random.permutation(len(points))
    place = np.argsort(order)
    tetrahedra = place[tetrahedra[random.permutation(len(tetrahedra))]]
    half = len(tetrahedra) // 2
    tetrahedra[:half] = tetrahedra[:half][:, [1, 0, 2, 3]]
    with h5py.File(path, "w") as file:
        file.create_dataset("points", data=points[order].astype("float32"), compression="gzip")
        file.create_dataset("tetrahedra", data=tetrahedra.astype("int32"), compression="gzip")


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    cells, path = [int(k) for k in sys.argv[1:4]], sys.argv[4]
    points, tetrahedra = box(cells)
    random = np.random.RandomState(1)
    inner = np.all((points > 0) & (points < cells), axis=1)
    points[inner] += 0.2 * (random.random_sample((inner.sum(), 3)) - 0.5)
    if path.endswith(".h5"):
        write_hdf5(path, points, tetrahedra, random)
    else:
        write_medit(path, points, tetrahedra)


if __name__ == "__main__":
    main()
