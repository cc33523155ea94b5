"""Commands on four ranks with one to three rows: ranks without a row neither hang nor change an answer."""

import unittest

import numpy as np
import scipy.sparse as sp

from support import CliTest, read_vector, write_binsparse, write_vector

RANKS = 4


class FewRows(CliTest):
    def setUp(self):
        super().setUp()
        self.matrices = []
        for n in (1, 2, 3):
            dense = 4 * np.eye(n) - np.diag(np.ones(n - 1), 1) - np.diag(np.ones(n - 1), -1)
            dense[0, 0] = 5
            self.matrices.append((n, write_binsparse(self.path(f"a{n}.h5"), sp.csr_matrix(dense)), dense))

    def test_solve(self):
        for n, name, dense in self.matrices:
            b = np.arange(1.0, n + 1)
            write_vector(self.path("b.npy"), b)
            for preconditioner in ("none", "jacobi", "block_jacobi", "chebyshev"):
                for solver in ("auto", "gmres"):
                    self.succeed("solve", name, "--b", "b.npy", "--solver", solver, "--preconditioner", preconditioner, "--output", "x.npy",
                                 "--force", ranks=RANKS)
                    np.testing.assert_allclose(read_vector(self.path("x.npy")), np.linalg.solve(dense, b), rtol=1e-6)

    def test_multiply(self):
        for n, name, dense in self.matrices:
            for columns in (1, 3):
                x = np.random.default_rng(n).uniform(-1, 1, (n, columns))
                write_vector(self.path("x.npy"), x[:, 0] if columns == 1 else x)
                self.succeed("multiply", name, "--x", "x.npy", "--rhs", columns, "--output", "y.npy", "--force", "--verify",
                             "--iterations", 2, ranks=RANKS)
                np.testing.assert_allclose(read_vector(self.path("y.npy")).reshape(n, columns), dense @ x, rtol=1e-12)
            self.succeed("multiply", name, "--mode", "power", "--iterations", 5, ranks=RANKS)

    def test_eigen(self):
        for n, name, dense in self.matrices:
            found = self.json_of("eigen", name, "--count", 1, "--which", "largest", ranks=RANKS)
            self.assertAlmostEqual(found["pairs"][0]["value"], np.linalg.eigvalsh(dense)[-1], delta=1e-6)

    def test_pagerank(self):
        for n, name, dense in self.matrices:
            self.succeed("pagerank", name, "--unweighted", "--output", "p.npy", "--force", ranks=RANKS)
            self.assertAlmostEqual(read_vector(self.path("p.npy")).sum(), 1, delta=1e-9)

    def test_batch_and_partition(self):
        self.succeed("batch", "batch:count=1,dim=3", "--rhs", 2, "--verify", ranks=RANKS)
        self.succeed("batch", "batch:count=2,dim=1", "--rhs", 1, "--verify", ranks=RANKS)
        for n, name, dense in self.matrices:
            self.succeed("multiply", name, name, "--batch", "auto", "--iterations", 1, ranks=RANKS)


if __name__ == "__main__":
    unittest.main()
