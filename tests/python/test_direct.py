"""Solvers by factors, with the answers of SciPy's."""

import unittest

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl

import shardmat


def laplacian(n):
    line = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(n, n))
    return sp.csr_matrix(sp.kron(line, sp.eye(n)) + sp.kron(sp.eye(n), line))


def saddle(n, m, rng):
    """[K Bᵀ; B 0]."""
    k, b = laplacian(n), sp.random(m, n * n, 0.2, random_state=rng) + sp.eye(m, n * n)
    return sp.csr_matrix(sp.bmat([[k, b.T], [b, None]]))


class Direct(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(3)
        spd = laplacian(14)
        beam = sp.diags([1.0, -4.0, 6.0, -4.0, 1.0], [-2, -1, 0, 1, 2], shape=(400, 400), format="csr")
        self.systems = {
            "definite": spd, "indefinite": sp.csr_matrix(spd - 1.7 * sp.eye(196)), "saddle point": saddle(10, 30, np.random.RandomState(1)),
            "unsymmetric": sp.csr_matrix(spd + 0.5 * sp.eye(196, k=1) - 0.3 * sp.eye(196, k=-14)), "beam": beam,
            "any": sp.csr_matrix(sp.random(150, 150, 0.05, random_state=5) + sp.csr_matrix(np.eye(150)[::-1]))}

    def test_answers_of_scipy(self):
        for name, a in self.systems.items():
            b = self.rng.standard_normal((a.shape[0], 3))
            expected = spl.spsolve(a.tocsc(), b)
            allowed = 1e-10 * abs(expected).max() * max(1, 1e-3 * np.linalg.cond(a.toarray()) * 1e-3)
            with self.subTest(name):
                for given in (a, a.tocoo(), a.toarray(), shardmat.Matrix.from_scipy(a)):
                    np.testing.assert_allclose(shardmat.spsolve(given, b), expected, atol=allowed)
                np.testing.assert_allclose(shardmat.spsolve(a, b[:, 0]), expected[:, 0], atol=allowed)
                np.testing.assert_allclose(shardmat.spsolve(a, b[:, :1]), expected[:, 0], atol=allowed)  # as SciPy
                np.testing.assert_allclose(shardmat.spsolve(a, sp.csc_matrix(b)), expected, atol=allowed)
                solve = shardmat.factorized(a)
                np.testing.assert_allclose(solve(b[:, 1]), expected[:, 1], atol=allowed)
                np.testing.assert_allclose(solve(b), expected, atol=allowed)

    def test_single_precision(self):
        a = self.systems["unsymmetric"].astype(np.float32)
        b = self.rng.standard_normal(196).astype(np.float32)
        x = shardmat.spsolve(a, b)
        self.assertEqual(x.dtype, np.float32)
        self.assertLessEqual(np.linalg.norm(b - a.astype(float) @ x.astype(float)), 1e-5 * np.linalg.norm(b))

    def test_singular_matrices_are_refused(self):
        ring = sp.csr_matrix(sp.eye(50) - sp.eye(50, k=-1) - sp.csr_matrix(([1.0], ([0], [49])), (50, 50)))
        for a in (ring, sp.diags(np.r_[np.ones(20), 0, np.ones(9)], format="csr")):
            with self.assertRaisesRegex(shardmat.InputError, "singular"):
                shardmat.spsolve(a, np.ones(a.shape[0]))

    def test_new_values(self):
        a = self.systems["definite"]
        m, b = shardmat.Matrix.from_scipy(a, updatable=True), self.rng.standard_normal(196)
        solver = m.solver("direct")
        np.testing.assert_allclose(solver.solve(b), spl.spsolve(a.tocsc(), b), atol=1e-10)
        for scale in (3.0, -0.5):  # the second is negative definite
            m.update_values(scale * a.data)
            solver.refresh()
            np.testing.assert_allclose(solver.solve(b), spl.spsolve(a.tocsc(), b) / scale, atol=1e-10)

    def test_preconditions_other_methods(self):
        a, b = self.systems["definite"], self.rng.standard_normal(196)
        m = shardmat.Matrix.from_scipy(a)
        for method in ("cg", "gmres", "bicgstab", "minres"):
            with m.solver(method, "direct", rtol=1e-10) as solver:
                np.testing.assert_allclose(solver.solve(b), spl.spsolve(a.tocsc(), b), atol=1e-9)
                self.assertLessEqual(solver.results[0]["iterations"], 2)
        with self.assertRaisesRegex(shardmat.UsageError, "takes the preconditioner direct only"):
            m.solver("direct", "jacobi")
        with self.assertRaisesRegex(shardmat.UsageError, "take the solver direct or fgmres"):
            shardmat.Matrix.from_scipy(self.systems["indefinite"]).solver("minres", "direct")


if __name__ == "__main__":
    unittest.main()
