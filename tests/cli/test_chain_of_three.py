"""Y = P·(A·(R·X)) over three row maps, by tests/runtime/maps/chain_of_three.cpp, compared with scipy.sparse."""

import os
import unittest

import numpy as np
import scipy.sparse as sp

from support import CliTest, read_vector, run, write_binsparse, write_vector

FINE, COARSE, RESULT = 523, 203, 341


def graded(rows, columns, seed):
    """Rows of very different lengths, some empty, and entries far from the diagonal: all ranks need x of other ranks."""
    random = np.random.default_rng(seed)
    matrix = sp.random(rows, columns, 0.03, "lil", random_state=seed)
    matrix[7] = random.uniform(-1, 1, columns)
    matrix[rows // 2] = 0
    return sp.csr_matrix(matrix)


class Chain(CliTest):
    def chain(self, matrices, x, ranks, columns=1):
        write_vector(self.path("x.npy"), x)
        result = run(["mpirun", "-n", ranks, os.environ["TEST_CHAIN_OF_THREE"], *matrices, "x.npy", "y.npy", columns], self.directory)
        self.assertEqual(result.code, 0, result)
        return read_vector(self.path("y.npy")).reshape(RESULT, columns)

    def assert_close(self, y, matrices, x):
        """Within the rounding of three products of non-negative terms."""
        r, a, p = matrices
        bound = 64 * np.finfo(float).eps * (abs(p) @ (abs(a) @ (abs(r) @ abs(x))))
        self.assertTrue((np.abs(y - p @ (a @ (r @ x))) <= bound).all())

    def test_it_equals_scipy_on_every_number_of_ranks(self):
        matrices = graded(COARSE, FINE, 1), graded(COARSE, COARSE, 2) + sp.eye(COARSE, format="csr"), graded(RESULT, COARSE, 3)
        names = ["r.npz", "a.h5", "p.npz"]
        sp.save_npz(self.path(names[0]), matrices[0])
        write_binsparse(self.path(names[1]), matrices[1])
        sp.save_npz(self.path(names[2]), matrices[2])
        x = np.random.default_rng(4).uniform(-1, 1, (FINE, 3))
        for ranks in (1, 2, 3, 5):
            for columns in (1, 3):
                with self.subTest(ranks=ranks, columns=columns):
                    given = x[:, :columns]
                    self.assert_close(self.chain(names, given[:, 0] if columns == 1 else given, ranks, columns), matrices, given)

    def test_the_coarse_matrix_of_multigrid(self):
        """P = Rᵀ of a fine grid, and A of the coarse one: R and P share the map of A, whose rows are not those of the source."""
        n = RESULT
        r = sp.diags([0.25, 0.5, 0.25], [0, 1, 2], (n, n), "csr")[::2][:COARSE - 35]
        a = sp.diags([-1.0, 2.5, -1.0], [-1, 0, 1], (r.shape[0],) * 2, "csr")
        names = ["r.npz", "a.npz", "p.npz"]
        for name, matrix in zip(names, (r, a, sp.csr_matrix(r.T))):
            sp.save_npz(self.path(name), matrix)
        x = np.random.default_rng(5).uniform(-1, 1, (n, 1))
        for ranks in (1, 2, 3, 5):
            with self.subTest(ranks=ranks):
                self.assert_close(self.chain(names, x[:, 0], ranks), (r, a, sp.csr_matrix(r.T)), x)


if __name__ == "__main__":
    unittest.main()
