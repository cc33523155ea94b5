"""Generated matrices have the properties of what they discretise; meshes come in through convert_mesh.py."""

import importlib.util
import sys
import unittest

import numpy as np

from support import CliTest, DATA, INPUT, ROOT, USAGE, read_binsparse, run


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
