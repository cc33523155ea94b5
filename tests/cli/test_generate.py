"""Generated matrices have the properties of what they discretise; meshes come in through convert_mesh.py."""

import importlib.util
import sys
import unittest

import numpy as np
import scipy.sparse as sp

from support import CliTest, DATA, INPUT, ROOT, USAGE, assert_product, read_binsparse, read_vector, run

CORNERS = np.array([(v & 1, v >> 1 & 1, v >> 2 & 1) for v in range(8)])


class CounterRandom:
    """The program's random numbers: the mixing function of splitmix64, of a counter."""

    def __init__(self, seed, stream):
        self.key = self.mix(self.mix(seed + 0x9E3779B97F4A7C15) + stream * 0x9E3779B97F4A7C15)

    @staticmethod
    def mix(x):
        x &= 2**64 - 1
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & 2**64 - 1
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB & 2**64 - 1
        return x ^ (x >> 31)

    def unit(self, index):
        return (self.mix(self.key + (index + 1) * 0x9E3779B97F4A7C15) >> 11) * 2.0**-53

    def symmetric(self, index):
        return 2 * self.unit(index) - 1


class Box:
    """Hexahedra of a grid with its corners, coefficients and element matrices, assembled by NumPy."""

    def __init__(self, size, edge=(1, 1, 1), inclusions=1, seed=1, uniform=False):
        z, y, x = np.meshgrid(*[np.arange(n) for n in reversed(size)], indexing="ij")
        self.steps = np.column_stack([x.ravel(), y.ravel(), z.ravel()])
        number = np.arange(x.size).reshape(x.shape)
        nx, ny, nz = (n - 1 for n in size)
        self.cells = np.stack([number[k:nz + k, j:ny + j, i:nx + i].ravel() for i, j, k in CORNERS], 1)
        place = CounterRandom(seed, 1)
        moved = [] if uniform else [place.symmetric(i) for i in range(3 * x.size)]
        self.points = (self.steps + (0 if uniform else 0.1 * np.reshape(moved, (-1, 3)))) * edge
        first = self.cells[:, 0]
        coefficient = CounterRandom(seed, 2)
        self.young = np.array([1.0 if uniform else 1 + 0.1 * coefficient.symmetric(int(i)) for i in first])
        blocks = [(n + 3) // 4 for n in size]
        drawn = CounterRandom(seed, 13)
        number = (self.steps[first] // 4) @ [1, blocks[0], blocks[0] * blocks[1]]
        self.young[[drawn.unit(int(i)) < 1 / 3 for i in number]] *= inclusions

    def at_points(self):
        """Shape functions, their gradients and weights at the 2 x 2 x 2 Gauss points of every element."""
        for point in (2 * CORNERS - 1) / np.sqrt(3):
            side = 2 * CORNERS - 1
            factor = (1 + side * point) / 2
            local = np.stack([side[:, d] / 2 * factor[:, (d + 1) % 3] * factor[:, (d + 2) % 3] for d in range(3)], 1)
            jacobian = np.einsum("ad,eak->edk", local, self.points[self.cells])
            yield factor.prod(1), np.einsum("ad,ekd->eak", local, np.linalg.inv(jacobian)), np.linalg.det(jacobian)

    def assemble(self, element, unknowns):
        dofs = (self.cells[:, :, None] * unknowns + np.arange(unknowns)).reshape(len(self.cells), -1)
        rows, columns = np.repeat(dofs, dofs.shape[1], 1).ravel(), np.tile(dofs, (1, dofs.shape[1])).ravel()
        return sp.csr_matrix((element.ravel(), (rows, columns)), shape=(unknowns * len(self.points),) * 2)

    def elasticity(self, nu):
        moduli = np.zeros((6, 6))
        moduli[:3, :3] = nu / ((1 + nu) * (1 - 2 * nu))
        moduli += np.diag([2, 2, 2, 1, 1, 1]) / (2 * (1 + nu))
        total = 0
        for _, gradient, weight in self.at_points():
            strain = np.zeros((len(self.cells), 6, 8, 3))
            for row, (i, j) in enumerate(((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (2, 0))):
                strain[:, row, :, i] = gradient[:, :, j]
                strain[:, row, :, j] = gradient[:, :, i]
            strain = strain.reshape(len(self.cells), 6, 24)
            total = total + (self.young * weight)[:, None, None] * (strain.transpose(0, 2, 1) @ moduli @ strain)
        return self.assemble(total, 3)

    def mass(self):
        element = sum(weight[:, None, None] * np.outer(value, value) for value, _, weight in self.at_points())
        return self.assemble(np.einsum("eab,ij->eaibj", element, np.eye(3)), 3)

    def poisson(self):
        return self.assemble(sum((self.young * weight)[:, None, None] * (gradient @ gradient.transpose(0, 2, 1))
                                 for _, gradient, weight in self.at_points()), 1)


def clamp(matrix, clamped):
    keep = sp.diags((~clamped).astype(float))
    return keep @ matrix @ keep + sp.diags(clamped.astype(float))


class Generate(CliTest):
    def matrix(self, *arguments):
        self.succeed("generate", *arguments, "o.h5")
        return read_binsparse(self.path("o.h5"))[1]

    def test_elasticity_is_symmetric_and_rigid_motions_cost_nothing(self):
        matrix = self.matrix("elasticity", "--n", 5)
        self.assertEqual(matrix.shape, (375, 375))
        self.assertLess(abs(matrix - matrix.T).max(), 1e-12 * abs(matrix).max())
        for direction in range(3):
            shift = np.zeros(375)
            shift[direction::3] = 1
            self.assertLess(abs(matrix @ shift).max(), 1e-10 * abs(matrix).max())
        values = np.linalg.eigvalsh(matrix.toarray())
        self.assertEqual(np.count_nonzero(abs(values) < 1e-10 * values[-1]), 6)

    def test_clamped_elasticity_is_positive_definite(self):
        matrix = self.matrix("elasticity", "--n", 4, "--clamp", 0.3)
        self.assertGreater(np.linalg.eigvalsh(matrix.toarray())[0], 0)

    def test_poisson_sends_constants_to_nothing(self):
        matrix = self.matrix("poisson", "--n", 6)
        self.assertLess(abs(matrix @ np.ones(216)).max(), 1e-12 * abs(matrix).max())

    def assert_close(self, matrix, expected):
        self.assertLess(abs(matrix - expected).max(), 1e-12 * abs(expected).max())

    def test_hard_systems_are_those_of_another_assembly(self):
        plain = ["--nx", 10, "--ny", 6, "--nz", 7]
        for options, box, nu in (([], {}, 0.3), (["--nu", 0.4999, "--uniform"], {"uniform": True}, 0.4999),
                                 (["--inclusions", 1e4, "--seed", 3], {"inclusions": 1e4, "seed": 3}, 0.3),
                                 (["--stretch", "1x0.5x20", "--nu", 0], {"edge": (1, 0.5, 20)}, 0),
                                 (["--stretch", 0.02, "--inclusions", 1e-3, "--uniform", "--nu", 0.49],
                                  {"edge": (1, 1, 0.02), "inclusions": 1e-3, "uniform": True}, 0.49)):
            with self.subTest(options=options):
                box = Box((10, 6, 7), **box)
                self.assert_close(self.matrix("elasticity", *plain, *options), box.elasticity(nu))
                scalar = [o for i, o in enumerate(options) if o != "--nu" and options[i - 1] != "--nu"]
                self.assert_close(self.matrix("poisson", *plain, *scalar), box.poisson())
                self.assert_close(self.matrix("mass", *plain, *options), box.mass())
                self.assert_close(self.matrix("mass", *plain, *options, "--lumped"), sp.diags(box.mass() @ np.ones(3 * len(box.points))).tocsr())

    def test_plates_and_beams_are_clamped_at_their_longest_edge(self):
        plate = Box((9, 9, 2), (1, 1, 0.1), uniform=True)
        self.assert_close(self.matrix("elasticity", "--n", 9, "--nz", 2, "--stretch", 0.1, "--uniform", "--clamp", 0.01),
                          clamp(plate.elasticity(0.3), np.repeat(plate.steps[:, 0] == 0, 3)))
        beam = Box((3, 3, 5), (1, 1, 10), inclusions=7)
        self.assert_close(self.matrix("elasticity", "--n", 3, "--nz", 5, "--stretch", 10, "--inclusions", 7, "--clamp", 0.3),
                          clamp(beam.elasticity(0.3), np.repeat(beam.steps[:, 2] <= 1, 3)))

    def test_size_is_the_lengths_of_the_box(self):
        options = ["--size", "1x1x10", "--n", 3, "--uniform"]
        box = Box((3, 3, 21), (0.5, 0.5, 0.5), uniform=True)
        self.assert_close(self.matrix("elasticity", *options), box.elasticity(0.3))
        self.assert_close(self.matrix("mass", *options), box.mass())

    def test_ranks_make_the_same_matrix(self):
        for matrix in ("elasticity:nx=9,ny=5,nz=4,inclusions=1e4,stretch=5,nu=0.49,clamp=0.1", "poisson:n=7,inclusions=1e4,stretch=3",
                       "poisson7:nx=9,ny=7,nz=5,inclusions=1e4", "poisson27:nx=9,ny=7,nz=5,inclusions=1e4,stretch=0.1",
                       "convection_diffusion:n=9,nz=4,wind=rotating", "poisson:size=1x2x5,n=4", "mass:nx=9,ny=5,nz=4,clamp=0.1", "mass:n=5,lumped"):
            with self.subTest(matrix=matrix):
                self.succeed("convert", matrix, "whole.npz", "--force")
                a = sp.load_npz(self.path("whole.npz")).tocsr()
                x = np.random.default_rng(2).standard_normal(a.shape[1])
                np.save(self.path("x.npy"), x)
                for ranks in (1, 2, 3):
                    self.succeed("multiply", matrix, "--x", "x.npy", "--output", "y.npy", "--force", "--iterations", 0, "--verify", ranks=ranks)
                    assert_product(self, read_vector(self.path("y.npy"), "y"), a, x, context=f"{matrix} on {ranks} ranks")

    def test_convection_is_unsymmetric_and_of_positive_real_part(self):
        a = self.matrix("convection_diffusion", "--n", 6, "--nz", 3, "--wind", "rotating", "--peclet", 100)
        self.assertGreater(abs(a - a.T).max(), 1)
        self.assertGreater(np.linalg.eigvals(a.toarray()).real.min(), 0)
        self.assertGreaterEqual(np.linalg.inv(a.toarray()).min(), 0)  # an M-matrix
        sums = a @ np.ones(a.shape[0])
        z, y, x = np.unravel_index(np.arange(a.shape[0]), (3, 6, 6))
        inner = (z == 1) & (y % 5 > 0) & (x % 5 > 0)
        self.assertLess(abs(sums[inner]).max(), 1e-12 * abs(a).max())
        self.assertGreater(sums[~inner].min(), 0.9)

    def test_seed_gives_the_same_matrix_and_another_seed_another(self):
        for generator in ("elasticity", "rmat", "random", "banded"):
            size = {"elasticity": ["--n", 4], "rmat": ["--scale", 6]}.get(generator, ["--n", 64])
            one, again, other = (self.matrix(generator, *size, "--seed", seed) for seed in (1, 1, 2))
            with self.subTest(generator=generator):
                self.assertEqual((one != again).nnz, 0)
                self.assertGreater((one != other).nnz, 0)

    def test_tetrahedra_of_a_mesh_in_both_degrees(self):
        linear = self.matrix("elasticity", "--mesh", DATA / "box.h5")
        quadratic = self.matrix("elasticity", "--mesh", DATA / "box.h5", "--degree", 2)
        self.assertEqual(linear.shape[0], 3 * 9 * 4 * 4)
        self.assertEqual(quadratic.shape[0], 3 * 17 * 7 * 7)
        for matrix in (linear, quadratic):
            self.assertLess(abs(matrix - matrix.T).max(), 1e-10 * abs(matrix).max())

    def test_parameters_out_of_range(self):
        for arguments, says in ((["--n", 0], "from 2"), (["--n", "x"], '"x"'), (["--n", 4, "--nu", 0.7], "nu"),
                                (["--n", 4, "--clamp", 2], "clamp"), (["--n", 4, "--degree", 3], "degree")):
            self.fail_with(USAGE, "generate", "elasticity", *arguments, "o.h5", says=says)

    def test_damaged_mesh(self):
        self.write("mesh.h5", b"no mesh")
        self.fail_with(INPUT, "generate", "elasticity", "--mesh", "mesh.h5", "o.h5", says="mesh.h5")
        self.succeed("generate", "poisson", "--n", 3, "matrix.h5")
        self.fail_with(INPUT, "generate", "elasticity", "--mesh", "matrix.h5", "o.h5", says=["matrix.h5", "/points"])


@unittest.skipUnless(importlib.util.find_spec("meshio"), "this Python has no meshio")
class ConvertMesh(CliTest):
    MESH = """$MeshFormat
2.2 0 8
$EndMeshFormat
$Nodes
5
1 0 0 0
2 1 0 0
3 0 1 0
4 0 0 1
5 1 1 1
$EndNodes
$Elements
3
1 2 2 0 1 1 2 3
2 4 2 0 1 1 2 3 4
3 4 2 0 1 2 3 4 5
$EndElements
"""

    def convert(self, *arguments):
        return run([sys.executable, ROOT / "tools" / "plots" / "convert_mesh.py", *arguments], self.directory)

    def test_gmsh_file_to_matrix(self):
        self.write("part.msh", self.MESH)
        result = self.convert("part.msh", "part.h5")
        self.assertEqual(result.code, 0, result)
        self.assertIn("5 points, 2 tetrahedra", result.out)
        self.succeed("generate", "poisson", "--mesh", "part.h5", "o.h5")
        matrix = read_binsparse(self.path("o.h5"))[1]
        self.assertEqual(matrix.shape, (5, 5))
        self.assertLess(abs(matrix @ np.ones(5)).max(), 1e-12)

    def test_mistakes(self):
        self.write("bad.msh", "no mesh")
        self.write("flat.msh", self.MESH.replace("$Elements\n3", "$Elements\n1").replace("2 4 2 0 1 1 2 3 4\n3 4 2 0 1 2 3 4 5\n", ""))
        for name, says in (("none.msh", "no such file"), ("bad.msh", "cannot read"), ("flat.msh", "no tetrahedra")):
            result = self.convert(name, "o.h5")
            self.assertEqual(result.code, INPUT, result)
            self.assertIn(says, result.err)
            self.assertFalse(self.path("o.h5").exists())


if __name__ == "__main__":
    unittest.main()
