"""Matrices and vectors of other programs: every command takes them, and what is written comes back bit for bit."""

import unittest

import numpy as np
import scipy.sparse as sp

from support import DATA, INPUT, USAGE, CliTest, assert_product, fem_matrix, read_binsparse


class Files(CliTest):
    def expect(self, name, matrix):
        self.succeed("convert", name, "back.h5", "--force")
        found = read_binsparse(self.path("back.h5"))[1]
        self.assertEqual(found.shape, matrix.shape)
        np.testing.assert_array_equal(found.indptr, matrix.indptr)
        np.testing.assert_array_equal(found.indices, matrix.indices)
        np.testing.assert_array_equal(found.data.view(np.int64), matrix.data.view(np.int64))


def petsc_numbers(*numbers):
    return np.array(numbers, ">i4").tobytes()


class Petsc(Files):
    def test_every_command(self):
        matrix = fem_matrix("convection")
        matrix.data[5] = 0  # an explicit zero stays
        sp.save_npz(self.path("a.npz"), matrix)
        self.succeed("convert", "a.npz", "a.petsc")
        self.succeed("convert", "a.npz", "a.petsc")  # replaces its own kind
        self.expect("a.petsc", matrix)
        x = np.random.default_rng(1).uniform(-1, 1, matrix.shape[1])
        vector = petsc_numbers(1211214, x.size) + x.astype(">f8").tobytes()
        self.write("both.petsc", self.path("a.petsc").read_bytes() + vector)
        self.succeed("convert", "a.npz", "a.h5")
        np.save(self.path("x.npy"), x)
        for ranks in (1, 3):
            report = self.json_of("multiply", "both.petsc", "--x", "both.petsc", "--output", "y.petsc", "--iterations", 0,
                                  "--verify", "--no-measure", ranks=ranks)
            self.assertEqual(report["matrix"]["access"], "each rank, its own rows")
            y = self.path("y.petsc").read_bytes()
            self.assertEqual(y[:8], petsc_numbers(1211214, x.size))
            assert_product(self, np.frombuffer(y[8:], ">f8").astype(float), matrix, x)
            self.succeed("multiply", "a.h5", "--x", "x.npy", "--output", "y.npy", "--iterations", 0, "--no-measure", ranks=ranks)
            self.assertEqual(np.load(self.path("y.npy")).astype(">f8").tobytes(), y[8:])  # the bits from the shard file
        self.succeed("partition", "both.petsc:0", "b.h5", "--parts", 2)
        self.assertEqual(self.json_of("info", "a.petsc")["nnz"], matrix.nnz)

    def test_solve_from_one_file(self):
        matrix = fem_matrix("elasticity_bar")
        matrix = sp.csr_matrix(matrix + 1e3 * sp.eye(matrix.shape[0]))
        sp.save_npz(self.path("a.npz"), matrix)
        self.succeed("convert", "a.npz", "a.petsc")
        b = np.linspace(-1, 1, matrix.shape[0])
        with self.path("a.petsc").open("ab") as file:
            file.write(petsc_numbers(1211214, b.size) + b.astype(">f8").tobytes())
        self.succeed("solve", "a.petsc", "--b", "a.petsc:1", "--output", "x.txt", "--rtol", "1e-10", ranks=2)
        x = np.loadtxt(self.path("x.txt"))
        self.assertLess(np.linalg.norm(matrix @ x - b), 1e-8 * np.linalg.norm(b))

    def test_info_lists_objects(self):
        file = DATA / "petsc" / "objects.petsc"
        text = self.succeed("info", file, "--quick").out
        for line in (f"{file}:0  sparse matrix, 7 × 5, 16 nonzeros", f"{file}:3  vector of 7 entries"):
            self.assertIn(line, text)
        objects = self.json_of("info", file, "--quick")["objects"]
        self.assertEqual([o["name"] for o in objects], ["0", "1", "2", "3"])
        self.assertEqual(self.json_of("info", f"{file}:2", "--quick")["rows"], 3)
        self.write("x.petsc", petsc_numbers(1211214, 1) + b"\0" * 8)
        self.assertIn("x.petsc:0  vector of 1 entries", self.succeed("info", "x.petsc").out)

    def test_mistakes(self):
        file = DATA / "petsc" / "objects.petsc"
        self.fail_with(INPUT, "info", f"{file}:1", says=["object 1 is no matrix", ":2 is a sparse matrix"])
        self.fail_with(INPUT, "info", "none.petsc:1", says=["none.petsc", "no such file"])
        self.fail_with(USAGE, "convert", file, "o.npz", "--input-format", "petcs", says=["did you mean 'petsc'?"])
        self.write("cut.petsc", file.read_bytes()[:200])
        self.fail_on_every_rank(INPUT, "multiply", "cut.petsc", says=["cut.petsc", "object 0 at byte 0", "truncated"])
        self.fail_with(INPUT, "convert", "cut.petsc", "o.npz", says="truncated")


if __name__ == "__main__":
    unittest.main()
