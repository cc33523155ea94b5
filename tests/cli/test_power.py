"""Power iteration against NumPy and SciPy."""

import unittest

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

from support import INPUT, USAGE, CliTest, DATA, fem_matrix, read_vector, write_binsparse, write_vector


class Power(CliTest):
    def test_same_steps_as_numpy_on_a_finite_element_matrix(self):
        matrix = fem_matrix("elasticity_bar")
        self.succeed("partition", DATA / "elasticity_bar.mtx.gz", "bar.h5", "--sort", "global")
        x = np.random.default_rng(1).standard_normal(matrix.shape[0])
        write_vector(self.path("x.npy"), x)
        report = self.json_of("multiply", "bar.h5", "--mode", "power", "--iterations", 20, "--x", "x.npy", "--output", "last.h5",
                              ranks=3)
        for _ in range(20):
            x = matrix @ x
            x /= np.linalg.norm(x)
        last = read_vector(self.path("last.h5"), "x")
        np.testing.assert_allclose(last, x, atol=1e-12)
        self.assertAlmostEqual(report["eigenvalue"]["estimate"] / (x @ (matrix @ x)), 1, delta=1e-12)

    def test_finds_the_largest_eigenvalue_that_scipy_finds(self):
        matrix = sp.random(80, 80, density=0.1, format="csr", random_state=2)
        matrix = sp.csr_matrix(matrix + sp.diags(np.linspace(0, 4, 80)))  # positive, so one real eigenvalue is the largest
        write_binsparse(self.path("a.h5"), matrix)
        expected = abs(scipy.sparse.linalg.eigs(matrix, k=1, which="LM")[0][0])
        for ranks in (1, 3):
            with self.subTest(ranks=ranks):
                found = self.json_of("multiply", "a.h5", "--mode", "power", "--iterations", 1000, "--x", "ones",
                                     ranks=ranks)["eigenvalue"]
                self.assertAlmostEqual(found["estimate"], expected, delta=1e-8 * expected)
                self.assertLess(found["relative_residual"], 1e-12)  # not the root of a difference of squares

    def test_needs_a_square_matrix(self):
        write_binsparse(self.path("wide.h5"), sp.csr_matrix(np.ones((2, 3))))
        self.fail_on_every_rank(USAGE, "multiply", "wide.h5", "--mode", "power", says=["wide.h5", "2 × 3", "square"])

    def test_a_vector_that_cannot_be_made_of_length_1_is_an_error(self):
        for name, scale in (("large", 1e155), ("small", 1e-165)):
            write_binsparse(self.path(f"{name}.h5"), sp.csr_matrix(sp.diags(scale * np.arange(1, 10))))
            self.fail_on_every_rank(INPUT, "multiply", f"{name}.h5", "--mode", "power", ranks=2, says=["length 1", "scale"])
        self.fail_with(INPUT, "multiply", "poisson:n=4", "--mode", "power", "--x", "zeros", "--output", "x.npy", says="length 1")
        self.assertFalse(self.path("x.npy").exists())

    def test_takes_neither_alpha_nor_beta(self):
        self.fail_with(USAGE, "multiply", "poisson:n=4", "--mode", "power", "--alpha", 2, says="--alpha")


if __name__ == "__main__":
    unittest.main()
