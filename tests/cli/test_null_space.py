"""shardmat solve with singular systems: what the matrix maps to 0 is found, named, and removed."""

import unittest

import numpy as np
import scipy.sparse as sp

from support import USAGE, write_binsparse, write_vector
from systems import NOT_CONVERGED, Solving, cantilever, laplacian


def closed_flow(n, wind):
    """Stokes, or Oseen, on a staggered grid of n × n cells with walls all around: nothing tells the mean of the pressure."""
    along, every = sp.diags([1, -1], [0, -1], (n, n - 1)), sp.eye(n)
    of_faces, of_cells = (sp.diags([-1 - wind, 2 + wind, -1], [-1, 0, 1], (m, m)) for m in (n - 1, n))
    u, v = (sp.kron(every, of_faces) + sp.kron(of_cells, sp.eye(n - 1)), sp.kron(of_faces, every) + sp.kron(sp.eye(n - 1), of_cells))
    divergence = -sp.hstack([sp.kron(every, along), sp.kron(along, every)])
    return sp.bmat([[sp.block_diag([u, v]), divergence.T], [divergence, None]]).tocsr()


class NullSpace(Solving):
    def test_the_pressure_of_a_closed_flow(self):
        n = 12
        for wind in (0, 2):
            matrix = closed_flow(n, wind)
            b = np.random.default_rng(8).standard_normal(matrix.shape[0])  # not consistent
            consistent = b.copy()
            consistent[-n * n:] -= b[-n * n:].mean()
            least = np.linalg.lstsq(matrix.toarray(), consistent, rcond=None)[0]
            for options in ((), ("--solver", "minres", "--preconditioner", "field_split"), ("--solver", "direct")):
                if wind and "minres" in options: continue
                for ranks in (1, 2, 3):
                    with self.subTest(wind=wind, options=options, ranks=ranks):
                        x, report = self.solution(matrix, b, "--backend", "host", *options, ranks=ranks)
                        self.assertEqual(report["solver"]["null_space_found"], "the constant of the second field, as a pressure without a reference")
                        self.assertAlmostEqual(report["columns"][0]["removed_from_b"], np.linalg.norm(b - consistent))
                        self.assertLessEqual(abs(x[-n * n:].mean()), 1e-9 * np.abs(x).max())
                        np.testing.assert_allclose(x, least, atol=1e-6 * np.abs(least).max())
                        if not options: self.assertEqual(report["solver"]["preconditioner"], "field_split")

    def test_a_null_space_beside_the_constants(self):
        """A structure without supports is not said to have constant vectors as its null space; pieces of a Laplacian are."""
        structure, _ = cantilever((12, 8), (1, 1), free=True)
        by_unknown = np.r_[np.arange(0, structure.shape[0], 2), np.arange(1, structure.shape[0], 2)]
        lines = [sp.csgraph.laplacian(sp.diags([1.0, 1.0], [-1, 1], shape=(n, n), format="csr")) for n in (15, 13)]
        grids = [sp.csr_matrix(sp.kronsum(line, line)) for line in lines]
        pieces = sp.block_diag(grids, format="csr")
        rng = np.random.default_rng(12)
        for ranks in (1, 2, 3):
            for matrix in (structure, structure[by_unknown][:, by_unknown].tocsr()):
                b = rng.standard_normal(matrix.shape[0])
                _, report = self.solution(matrix, b, "--solver", "cg", ranks=ranks, code=NOT_CONVERGED)  # it turns, too
                self.assertTrue(report["maps_more_to_zero"])
                self.assertNotIn("maps_constants_to_zero", report)
                x, report = self.solution(matrix, matrix @ b, "--solver", "cg", ranks=ranks)  # consistent
                self.assertLessEqual(np.linalg.norm(matrix @ (x - b)), 1.01e-8 * np.linalg.norm(matrix @ b))
            for matrix in (grids[0], pieces):
                b = rng.standard_normal(matrix.shape[0])
                _, report = self.solution(matrix, b - b.mean() + 1, "--solver", "cg", "--null-space", "none", ranks=ranks, code=NOT_CONVERGED)
                self.assertTrue(report["maps_constants_to_zero"])
                self.assertNotIn("maps_more_to_zero", report)
                x, report = self.solution(matrix, b, "--solver", "cg", ranks=ranks)
                self.assertEqual(report["solver"]["null_vectors"], 1 if matrix is grids[0] else 2)
                self.assertLessEqual(np.linalg.norm(matrix @ (matrix @ x - b)), 1e-6 * np.linalg.norm(b))
                for rtol in (1e-8, 1e-16):  # consistent, by a tolerance that is met, and one that is not
                    b = matrix @ rng.standard_normal(matrix.shape[0])
                    x, report = self.solution(matrix, b, "--solver", "cg", "--rtol", rtol, ranks=ranks)
                    self.assertLessEqual(np.linalg.norm(matrix @ x - b), 1.01e-8 * np.linalg.norm(b))

    def test_a_null_space_that_nobody_named_is_named(self):
        n = 60
        ring = sp.diags([2.0] * n, 0, shape=(n, n)).tolil()
        for i in range(n): ring[i, (i + 1) % n] = ring[(i + 1) % n, i] = -1
        b = np.random.default_rng(6).standard_normal(n)
        for ranks in (1, 3):
            _, report = self.solution(ring.tocsr(), b, "--preconditioner", "jacobi", ranks=ranks, code=NOT_CONVERGED)
            self.assertTrue(report["maps_constants_to_zero"])
            _, report = self.solution(ring.tocsr(), b, ranks=ranks)  # the chosen preconditioner looks for it
            self.assertEqual(report["solver"]["null_space_found"], "constant vectors")
        x, report = self.solution(ring.tocsr(), b, "--null-space", "constant", ranks=3)
        self.assertNotIn("maps_constants_to_zero", report)
        _, report = self.solution(laplacian(12), np.ones(144), "--max-iterations", 5, ranks=2, code=NOT_CONVERGED)
        self.assertNotIn("maps_constants_to_zero", report)

    def test_singular_but_consistent(self):
        matrix = sp.csr_matrix(sp.diags([2.0, -1.0, -1.0, -1.0, -1.0], [0, 1, -1, 29, -29], shape=(30, 30)))  # a ring
        b = np.random.default_rng(7).standard_normal(30)
        b -= b.mean()
        for method in ("cg", "minres", "gmres"):
            x, _ = self.solution(matrix, b, "--solver", method)
            self.assertLessEqual(np.linalg.norm(b - matrix @ x), 1.01e-8 * np.linalg.norm(b))

    def test_tells_of_a_singular_matrix(self):
        for options in ([], ["--b", "random", "--type", "f32"]):
            out = self.call("solve", "poisson:n=8", "--null-space", "none", *options).out  # periodic: constant vectors are its null space
            self.assertRegex(out, r"singular +A maps constant vectors to 0 .*set the null space to constant")
        self.assertNotIn("singular", self.succeed("solve", "poisson:n=8", "--b", "random", "--null-space", "constant").out)
        _, report = self.solution(sp.diags([1.0, 2.0, 0.0, 3.0]).tocsr(), np.ones(4), "--solver", "minres", code=NOT_CONVERGED)
        column = report["columns"][0]
        self.assertEqual(column["reason"], "least_squares")
        self.assertAlmostEqual(column["true_residual"], 1)  # of the row of zeros
        self.assertNotIn("advice", report)
        out = self.call("solve", "poisson:n=8", "--null-space", "none", "--solver", "minres", "--max-iterations", 1000).out
        self.assertRegex(out, r"reason +least_squares.*set the null space to constant")
        self.assertNotIn("singular", self.call("solve", "elasticity:n=6,clamp=0.02", "--max-iterations", 5).out)

    def test_constant_null_space(self):
        one = sp.diags([-1, 2, -1], [-1, 0, 1], shape=(7, 7)).tolil()
        one[0, 0] = one[6, 6] = 1  # Neumann conditions on all sides
        scaled = sp.kronsum(one, 3 * one) + 100 * sp.kron(one, one)
        matrix, rng = sp.csr_matrix(scaled), np.random.default_rng(9)
        inverse = np.linalg.pinv(matrix.toarray())
        b, guess = rng.standard_normal((49, 3)) + [[0, 2, 0]], rng.standard_normal((49, 3)) + 5
        b[:, 0] -= b[:, 0].mean()
        b[:, 2] = 4  # nothing is left of it
        write_vector(self.path("guess.npy"), guess)
        for number, (method, preconditioner) in enumerate((
                ("cg", "none"), ("cg", "jacobi"), ("minres", "block_jacobi"), ("gmres", "jacobi"), ("fgmres", "chebyshev"),
                ("bicgstab", "none"), ("chebyshev", "jacobi"), ("cg", "chebyshev"))):
            with self.subTest(method=method, preconditioner=preconditioner):
                x, report = self.solution(matrix, b, "--rhs", 3, "--solver", method, "--preconditioner", preconditioner,
                                          *(["--restart", 60] if "gmres" in method else []), "--null-space", "constant", "--initial-guess", "guess.npy", "--rtol", 1e-10, ranks=(0, 2, 3)[number % 3])
                np.testing.assert_allclose(x, inverse @ b, atol=1e-8 * np.abs(inverse @ b).max())
                self.assertLess(np.abs(x.mean(axis=0)).max(), 1e-14 * max(1, np.abs(x).max()))
                removed = [column["removed_from_b"] for column in report["columns"]]
                np.testing.assert_allclose(removed, 7 * np.abs(b.mean(axis=0)), atol=1e-12)
                self.assertEqual([column["reason"] for column in report["columns"]], ["converged_rtol"] * 2 + ["converged_atol"])
        out = self.succeed("solve", "a.h5", "--b", "b.npy", "--rhs", 3, "--null-space", "constant", "--type", "f32", "--rtol", 1e-4).out
        self.assertIn("b was not consistent in 2 of 3 columns", out)
        self.assertIn("summed in f64", out)
        write_binsparse(self.path("dirichlet.h5"), laplacian(6))
        drift = sp.csr_matrix(np.array([[1.0, -1, 0], [0, 2, -2], [-3, 0, 3]]))  # maps constant vectors to 0, its transpose does not
        write_binsparse(self.path("drift.h5"), drift)
        self.fail_on_every_rank(USAGE, "solve", "dirichlet.h5", "--null-space", "constant", says=["not in the null space", "--null-space"])
        self.fail_with(USAGE, "solve", "drift.h5", "--solver", "gmres", "--null-space", "constant", says=["transpose", "--null-space"])


if __name__ == "__main__":
    unittest.main()
