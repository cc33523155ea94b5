"""Solutions on the nodes of a mesh, in files of VTK that are read back here, and by meshio where it is installed."""

import base64
import shutil
import subprocess
import sys
import unittest
import xml.etree.ElementTree

import h5py
import numpy as np

from support import DATA, INPUT, ROOT, USAGE, CliTest, has_matplotlib
from test_node_files import NodeFiles

CORNERS = {1: 1, 3: 2, 5: 3, 9: 4, 10: 4, 12: 8, 13: 6, 14: 5, 24: 10, 25: 20}


def read_vtu(path):
    """Points, values by name, and cells as (type, nodes)."""
    root = xml.etree.ElementTree.parse(path).getroot()
    assert root.attrib == {"type": "UnstructuredGrid", "version": "1.0", "byte_order": "LittleEndian", "header_type": "UInt64"}
    kinds = {"Float64": "<f8", "Int64": "<i8", "UInt8": "u1"}
    data = {}
    for array in root.iter("DataArray"):
        raw = base64.b64decode(array.text, validate=True)
        assert int.from_bytes(raw[:8], "little") == len(raw) - 8
        values = np.frombuffer(raw[8:], kinds[array.get("type")])
        width = int(array.get("NumberOfComponents", 1))
        data[array.get("Name")] = values if width == 1 else values.reshape(-1, width)
    piece = next(root.iter("Piece"))
    points = data.pop("Points")
    types, ends, nodes = data.pop("types"), data.pop("offsets"), data.pop("connectivity")
    assert len(points) == int(piece.get("NumberOfPoints")) and len(types) == int(piece.get("NumberOfCells"))
    cells = list(zip(types.tolist(), np.split(nodes, ends[:-1])))
    assert ends[-1] == len(nodes) and all(len(of) == CORNERS[kind] for kind, of in cells)
    assert all(len(values) == len(points) for values in data.values())
    return points, data, cells


def volume(points, cells):
    """Of tetrahedra and hexahedra by their corners: a hexahedron is cut into six tetrahedra."""
    total = 0
    for kind, nodes in cells:
        cut = [(0, 1, 2, 3)] if kind in (10, 24) else [(0, 1, 3, 7), (0, 1, 7, 4), (1, 2, 3, 7), (1, 2, 7, 6), (1, 5, 6, 7), (1, 4, 5, 7)]
        for a, b, c, d in cut:
            at = points[nodes]
            total += abs(np.linalg.det([at[b] - at[a], at[c] - at[a], at[d] - at[a]])) / 6
    return total


def middles_are_in_the_middle(points, nodes, edges, corners):
    return all(np.allclose(points[nodes[corners + k]], (points[nodes[a]] + points[nodes[b]]) / 2) for k, (a, b) in enumerate(edges))


TETRAHEDRON_EDGES = ((0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3))


class Generators(CliTest):
    def test_boxes_and_tetrahedra(self):
        shutil.copy(DATA / "box.h5", self.path("box.h5"))
        for matrix, cells, kind, components in (("elasticity:nx=4,ny=3,nz=5,clamp=0.3", 2 * 3 * 4, 12, 3), ("poisson27:n=4", 27, 12, 1),
                                                ("elasticity:mesh=box.h5,clamp=0.1", None, 10, 3), ("elasticity:mesh=box.h5,degree=2,clamp=0.1", None, 24, 3),
                                                ("convection_diffusion:nx=5,ny=4,nz=1,peclet=1", 12, 9, 1)):
            for ranks in (0, 2, 3) if kind == 12 else (3,):
                with self.subTest(matrix=matrix, ranks=ranks):
                    self.json_of("solve", matrix, "--backend", "host", "--output", "x.npy", "--force", "--vtk", "x.vtu", "--b", "random", ranks=ranks)
                    points, data, found = read_vtu(self.path("x.vtu"))
                    x = np.load(self.path("x.npy"))
                    values = data["x"] if components == 3 else data["x"].reshape(-1, 1)
                    np.testing.assert_array_equal(values.ravel(), x.ravel())
                    self.assertEqual({kind}, {of for of, _ in found})
                    if cells:
                        self.assertEqual(len(found), cells)
                    if kind == 12:
                        size = np.ptp(points, axis=0)
                        self.assertAlmostEqual(volume(points, found) / np.prod(size), 1, delta=0.3)  # corners are moved a little
                    if kind == 24:
                        self.assertTrue(all(middles_are_in_the_middle(points, nodes, TETRAHEDRON_EDGES, 4) for _, nodes in found))
                    if kind in (10, 24):
                        with h5py.File(self.path("box.h5")) as file:
                            mesh, tetrahedra = file["points"][:], file["tetrahedra"][:]
                        self.assertAlmostEqual(volume(points, found), volume(mesh, [(10, t) for t in tetrahedra]), places=5)
        self.assertGreater(np.ptp(x), 0)

    def test_meshio_reads_it(self):
        try:
            import meshio
        except ImportError:
            self.skipTest("no meshio")
        self.json_of("solve", "elasticity:nx=4,ny=3,nz=5,clamp=0.3", "--rhs", 2, "--vtk", "x.vtu", "--output", "x.npy", "--backend", "host")
        mesh = meshio.read(self.path("x.vtu"))
        x = np.load(self.path("x.npy"))
        for j in range(2):
            np.testing.assert_array_equal(mesh.point_data[f"x_{j}"].ravel(), x[:, j])
        self.assertEqual([block.type for block in mesh.cells], ["hexahedron"])

    def test_points_alone_and_nothing(self):
        self.succeed("convert", "elasticity:nx=3,ny=2,nz=2,clamp=0.4", "a.mtx")
        self.fail_with(INPUT, "solve", "a.mtx", "--backend", "host", "--vtk", "x.vtu", says=["a.mtx", "where its nodes lie is not known", "(--coordinates)"])
        self.assertFalse(self.path("x.vtu").exists())
        corners = np.array([[i, j, k] for k in range(2) for j in range(2) for i in range(3)], float)
        np.save(self.path("at.npy"), corners)
        for ranks in (0, 2):
            self.json_of("solve", "a.mtx", "--backend", "host", "--solver", "cg", "--preconditioner", "jacobi", "--coordinates", "at.npy", "--vtk", "x.vtu", "--output", "x.npy", "--force", ranks=ranks)
            points, data, cells = read_vtu(self.path("x.vtu"))
            np.testing.assert_array_equal(points, corners)
            np.testing.assert_array_equal(data["x"].ravel(), np.load(self.path("x.npy")))
            self.assertEqual([(kind, nodes.tolist()) for kind, nodes in cells], [(1, [i]) for i in range(12)])
        self.fail_with(USAGE, "solve", "a.mtx", "--vtk", "x.vtk", says=[".vtu"])

    @unittest.skipUnless(has_matplotlib(), "matplotlib is missing")
    def test_a_picture_of_the_surface(self):
        self.json_of("solve", "elasticity:nx=4,ny=3,nz=5,clamp=0.3", "--vtk", "x.vtu", "--backend", "host")
        for more in ((), ("--deform", "auto")):
            subprocess.run([sys.executable, ROOT / "tools" / "plots" / "plot_surface.py", "x.vtu", "--output", "x.png", *more], cwd=self.directory, check=True)
            self.assertEqual(self.path("x.png").read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        wrong = subprocess.run([sys.executable, ROOT / "tools" / "plots" / "plot_surface.py", "x.vtu", "--output", "x.png", "--name", "y"],
                               cwd=self.directory, capture_output=True, text=True)
        self.assertNotEqual(wrong.returncode, 0)
        self.assertIn("has no values y, but x", wrong.stderr)


class Meshes(NodeFiles):
    """A part of CalculiX whose held nodes are no rows, and the same of Gmsh."""

    def test_held_nodes_are_points(self):
        from test_node_files import OtherPrograms  # here, so that its own tests do not run again

        job = OtherPrograms()
        job.setUp()
        self.addCleanup(job.doCleanups)
        job.write_job("job", np.repeat(~job.held, 3))
        for ranks in (0, 3):
            job.json_of("solve", "job.sti", "--backend", "host", "--coordinates", "job.inp", "--vtk", "x.vtu", "--output", "x.npy", "--force", ranks=ranks)
            points, data, cells = read_vtu(job.path("x.vtu"))
            self.assertEqual(len(points), 833)
            order = np.argsort(job.numbers)
            np.testing.assert_array_equal(points, job.points[order])
            np.testing.assert_array_equal(data["x"][job.held[order]], 0)
            np.testing.assert_array_equal(data["x"][~job.held[order]].ravel(), np.load(job.path("x.npy")))
            self.assertEqual({kind for kind, _ in cells}, {24})
            self.assertTrue(all(middles_are_in_the_middle(points, nodes, TETRAHEDRON_EDGES, 4) for _, nodes in cells))

    def test_elements_of_every_kind(self):
        """Of Gmsh and Abaqus: two hexahedra, one with 20 nodes; what lies on their surfaces is no cell."""
        at = [(x, y, z) for z in (0, 1) for x, y in ((0, 0), (1, 0), (1, 1), (0, 1))]
        edges = ((0, 1), (0, 3), (0, 4), (1, 2), (1, 5), (2, 3), (2, 6), (3, 7), (4, 5), (4, 7), (5, 6), (6, 7))  # Gmsh's order
        middles = [tuple((np.array(at[a]) + np.array(at[b])) / 2) for a, b in edges]
        nodes = at + middles + [(x + 2.0, y, z) for x, y, z in at]
        lines = ["$MeshFormat", "2.2 0 8", "$EndMeshFormat", "$Nodes", str(len(nodes))]
        lines += [f"{i + 1} {x} {y} {z}" for i, (x, y, z) in enumerate(nodes)]
        lines += ["$EndNodes", "$Elements", "4", "1 15 2 0 1 1", "2 3 2 0 1 1 2 3 4", "3 17 2 0 1 " + " ".join(str(i + 1) for i in range(20)),
                  "4 5 2 0 1 " + " ".join(str(i + 1) for i in range(20, 28)), "$EndElements"]
        self.write("two.msh", "\n".join(lines) + "\n")
        abaqus = ((0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 7), (7, 4), (0, 4), (1, 5), (2, 6), (3, 7))
        place = {frozenset(edge): 8 + k for k, edge in enumerate(edges)}
        order = list(range(8)) + [place[frozenset(edge)] for edge in abaqus]
        deck = ["*NODE"] + [f"{i + 1}, {x}, {y}, {z}" for i, (x, y, z) in enumerate(nodes)] + ["*ELEMENT, TYPE=C3D20R"]
        deck += ["1, " + ", ".join(str(order[i] + 1) for i in range(10)) + ",", ", ".join(str(order[i] + 1) for i in range(10, 20))]
        deck += ["*ELEMENT, TYPE=C3D8", "2, " + ", ".join(str(i + 1) for i in range(20, 28)), "*ELEMENT, TYPE=S4", "3, 1, 2, 3, 4"]
        self.write("two.inp", "\n".join(deck) + "\n")
        self.write("a.mtx", "%%MatrixMarket matrix coordinate real symmetric\n28 28 28\n" + "".join(f"{i} {i} {i}\n" for i in range(1, 29)))
        for mesh in ("two.msh", "two.inp"):
            with self.subTest(mesh=mesh):
                self.json_of("solve", "a.mtx", "--backend", "host", "--coordinates", mesh, "--vtk", "x.vtu", "--solver", "cg", "--preconditioner", "none")
                points, data, cells = read_vtu(self.path("x.vtu"))
                self.assertEqual([kind for kind, _ in cells], [25, 12])
                self.assertTrue(middles_are_in_the_middle(points, cells[0][1], abaqus, 8))
                self.assertEqual(cells[1][1].tolist(), list(range(20, 28)))
                np.testing.assert_allclose(data["x"], 1 / np.arange(1, 29), rtol=1e-6)


if __name__ == "__main__":
    unittest.main()
