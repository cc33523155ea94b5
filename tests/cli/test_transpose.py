"""Products with the transpose and least squares, against SciPy: rectangular matrices with empty rows and columns, on any ranks."""

import json
import unittest

import numpy as np
import scipy.io
import scipy.sparse as sp
import scipy.sparse.linalg as spl

from support import FEM, INPUT, USAGE, CliTest, fem_matrix, read_vector, write_vector


def with_holes(rows, cols, seed):
    """Empty rows and columns, and one dense column; not symmetric."""
    random = np.random.default_rng(seed)
    a = sp.random(rows, cols, 0.08, random_state=seed, data_rvs=lambda n: random.uniform(-1, 1, n)).tolil()
    a[:, cols // 3] = random.uniform(0.5, 1, (rows, 1))
    a[[0, 5, rows - 1]] = 0
    a[:, [2, cols - 1]] = 0
    a = a.tocsr()
    a.eliminate_zeros()
    return a


class Transpose(CliTest):
    def write_matrix(self, a, name="a.mtx"):
        scipy.io.mmwrite(self.path(name), a)
        return name

    def test_products_are_scipys(self):
        random = np.random.default_rng(3)
        for rows, cols in ((130, 70), (70, 130), (90, 90)):
            a = with_holes(rows, cols, rows)
            name = self.write_matrix(a)
            for ranks in (1, 2, 3, 5):
                for type, near, columns in (("f64", 1e-13, 1), ("f32", 1e-5, 4)):
                    with self.subTest(shape=a.shape, ranks=ranks, type=type, columns=columns):
                        x, y0 = random.uniform(-1, 1, (rows, columns)), random.uniform(-1, 1, (cols, columns))
                        write_vector(self.path("x.npy"), x if columns > 1 else x[:, 0])
                        write_vector(self.path("y0.npy"), y0 if columns > 1 else y0[:, 0])
                        self.succeed("multiply", name, "--transpose", "--x", "x.npy", "--y0", "y0.npy", "--alpha", 2, "--beta", -0.5,
                                     "--type", type, "--rhs", columns, "--output", "y.npy", "--verify", "--iterations", 1,
                                     "--backend", "host", ranks=ranks)
                        y = read_vector(self.path("y.npy")).reshape(cols, columns)
                        np.testing.assert_allclose(y, 2 * (a.T @ x) - 0.5 * y0, rtol=near, atol=near * 30)

    def test_of_finite_elements_and_sorted_rows(self):
        for name in FEM:
            a = fem_matrix(name)
            path = self.write_matrix(a, f"{name}.mtx")
            self.succeed("partition", path, f"{name}.h5", "--parts", 2, "--sort", "global")
            x = np.random.default_rng(1).uniform(-1, 1, a.shape[0])
            write_vector(self.path("x.npy"), x)
            for given in (path, f"{name}.h5"):
                self.succeed("multiply", given, "--transpose", "--x", "x.npy", "--output", "y.npy", "--verify", "--iterations", 0,
                             "--backend", "host", ranks=2)
                expected = a.T @ x
                np.testing.assert_allclose(read_vector(self.path("y.npy")), expected, atol=1e-12 * np.abs(expected).max())

    def test_the_report_compares_with_the_matrix(self):
        report = self.json_of("multiply", "elasticity:n=6", "--transpose", "--iterations", 3, "--kernel", "csr_host", "--backend", "host")
        self.assertEqual(report["transpose"]["map_bytes"]["max"], 0)
        self.assertEqual(report["transpose"]["product_of_matrix"]["iterations"], 3)
        report = self.json_of("multiply", "elasticity:n=6", "--transpose", "--iterations", 1, "--kernel", "sell_host", "--backend", "host")
        nnz, rows = report["matrix"]["nnz"], report["matrix"]["rows"]
        self.assertGreaterEqual(report["transpose"]["map_bytes"]["max"], 8 * nnz)
        self.assertLessEqual(report["transpose"]["map_bytes"]["max"], 8 * nnz + 8 * (rows + 65))

    def test_refused(self):
        for words, part in ((["poisson:n=4", "--mode", "dots"], "mode dots is for products with the matrix"),
                            (["poisson:n=4", "--verify=sampled"], "verified in full"),
                            (["poisson:n=4", "--type", "f16", "--rhs", 2], "f16 has no products with the transpose"),
                            (["poisson:n=4", "poisson:n=5"], "several matrices")):
            self.fail_with(USAGE, "multiply", *words, "--transpose", "--backend", "host", says=part)


class LeastSquares(CliTest):
    def solve(self, a, b, solver, *words, ranks=1, code=0):
        scipy.io.mmwrite(self.path("a.mtx"), a)
        write_vector(self.path("b.npy"), b)
        result = self.call("solve", "a.mtx", "--solver", solver, "--b", "b.npy", "--output", "x.npy", "--json", "r.json", "--force",
                               "--backend", "host", *words, ranks=ranks)
        self.assertEqual(result.code, code, result)
        return read_vector(self.path("x.npy")), json.loads(self.path("r.json").read_text())

    def test_solutions_are_scipys(self):
        random = np.random.default_rng(5)
        for rows, cols in ((150, 60), (60, 150), (80, 80)):
            a = with_holes(rows, cols, rows + 1) + sp.eye(rows, cols)
            b = random.uniform(-1, 1, rows)
            expected = spl.lsqr(a, b, atol=1e-14, btol=1e-14, iter_lim=5000)[0]
            consistent = a @ random.uniform(-1, 1, cols)
            for ranks in (1, 2, 3, 5):
                for solver in ("lsqr", "cgls"):
                    with self.subTest(shape=a.shape, ranks=ranks, solver=solver):
                        x, report = self.solve(a, b, solver, "--rtol", 1e-11, ranks=ranks)
                        self.assertTrue(report["converged"])
                        np.testing.assert_allclose(x, expected, atol=1e-6 * np.abs(expected).max())
                        r = b - a @ x
                        self.assertAlmostEqual(report["residual"], np.linalg.norm(r), delta=1e-10 * np.linalg.norm(b))
                        self.assertLessEqual(np.linalg.norm(a.T @ r), 2e-10 * spl.norm(a) * np.linalg.norm(b))
                        if ranks != 3:
                            continue
                        x, report = self.solve(a, consistent, solver, "--rtol", 1e-11, ranks=ranks)
                        self.assertEqual(report["end"], "solved")
                        self.assertLessEqual(np.linalg.norm(consistent - a @ x), 1e-9 * np.linalg.norm(consistent))

    def test_f32_and_ends(self):
        a = with_holes(150, 60, 4) + sp.eye(150, 60)
        b = np.random.default_rng(6).uniform(-1, 1, 150)
        expected = spl.lsqr(a, b, atol=1e-14, btol=1e-14)[0]
        for solver in ("lsqr", "cgls"):
            x, report = self.solve(a, b, solver, "--type", "f32")
            self.assertTrue(report["converged"])
            np.testing.assert_allclose(x, expected, atol=1e-3 * np.abs(expected).max())
            _, report = self.solve(a, b, solver, "--max-iterations", 2, code=7)
            self.assertEqual((report["end"], report["iterations"]), ("max_iterations", 2))
            x, report = self.solve(a, 0 * b, solver)
            self.assertEqual((report["end"], report["iterations"], np.abs(x).max()), ("solved", 0, 0))

    def test_matrices_of_any_scale(self):
        random = np.random.default_rng(5)
        a, b = random.uniform(-1, 1, (60, 40)) + np.eye(60, 40), random.uniform(-1, 1, 60)
        expected = np.linalg.lstsq(a, b, rcond=None)[0]
        write_vector(self.path("b.npy"), b)
        for scale, type, near in ((1e-30, "f32", 1e-4), (1e-20, "f32", 1e-4), (1e20, "f32", 1e-4), (1e-120, "f64", 1e-8)):
            scipy.io.mmwrite(self.path("a.mtx"), sp.coo_matrix(scale * a))
            for solver in ("lsqr", "cgls"):
                with self.subTest(scale=scale, solver=solver):
                    self.succeed("solve", "a.mtx", "--solver", solver, "--b", "b.npy", "--output", "x.npy", "--type", type,
                                 "--backend", "host", ranks=2)
                    np.testing.assert_allclose(scale * read_vector(self.path("x.npy")), expected, rtol=0, atol=near)
        for scale, options, says in ((1e25, ["--type", "f32", "--initial-guess", "ones"], "the range of f32"), (1e-170, [], "too small for f64")):
            scipy.io.mmwrite(self.path("a.mtx"), sp.coo_matrix(scale * a))
            for solver in ("lsqr", "cgls"):
                self.fail_with(INPUT, "solve", "a.mtx", "--solver", solver, "--backend", "host", *options, says=says)

    def test_refused(self):
        for words, part in ((["--preconditioner", "jacobi"], "takes no preconditioner"), (["--rhs", 2], "one right-hand side"),
                            (["--storage", "symmetric"], "symmetric storage"), (["--dry-run"], "dry run")):
            self.fail_with(USAGE, "solve", "poisson:n=4", "--solver", "lsqr", *words, "--backend", "host", says=part)


if __name__ == "__main__":
    unittest.main()
