"""What is called as in SciPy and as in pyamg, with the answers of SciPy."""

import contextlib
import inspect
import io
import pathlib
import re
import unittest

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl

import shardmat
from checks import elastic_plate, rigid_modes, tridiagonal

OF_SCIPY = "rtol" if "rtol" in inspect.signature(spl.cg).parameters else "tol"  # renamed in 1.12


def laplacian(n):
    line = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(n, n))
    return sp.csr_matrix(sp.kron(line, sp.eye(n)) + sp.kron(sp.eye(n), line))


class Eigsh(unittest.TestCase):
    """Pairs whose eigenvalues come once and twice; a mass matrix that is not the identity."""

    def setUp(self):
        line = sp.diags([1.0, 4.0, 1.0], [-1, 0, 1], shape=(12, 12)) / 6
        self.a, self.m = laplacian(12), sp.csr_matrix(sp.kron(line, line))
        self.rng = np.random.default_rng(5)

    def assert_alike(self, found, expected, a, m=None):
        (w, v), m = found, sp.identity(a.shape[0]) if m is None else m
        np.testing.assert_allclose(w, np.sort(expected), rtol=1e-8)
        np.testing.assert_allclose(a @ v, (m @ v) * w, atol=1e-6 * np.abs(w).max())
        np.testing.assert_allclose(v.T @ (m @ v), np.eye(len(w)), atol=1e-8)

    def test_called_as_scipys(self):
        a, m = self.a, self.m
        signature = list(inspect.signature(shardmat.eigsh).parameters)
        of_scipy = [name for name in inspect.signature(spl.eigsh).parameters if name != "rng"]
        self.assertEqual(signature[: len(of_scipy)], of_scipy)
        for given in ({}, {"which": "LA"}, {"which": "SA"}, {"which": "BE"}, {"sigma": 0.4}, {"which": "SM"}):
            for k in (2, 5):
                with self.subTest(k=k, **given):
                    self.assert_alike(shardmat.eigsh(a, k, **given), spl.eigsh(a, k, **given)[0], a)
        for given in ({"which": "SM"}, {"sigma": 0.4}, {"which": "SM", "method": "shift_invert"}):
            expected = spl.eigsh(a, 5, M=m, sigma=given.get("sigma", 0))[0]
            with self.subTest(**given):
                self.assert_alike(shardmat.eigsh(a, 5, m, **given), expected, a, m)
                self.assert_alike(shardmat.eigsh(a.toarray(), 5, M=sp.csc_array(m), **given), expected, a, m)
                np.testing.assert_allclose(shardmat.eigsh(a, 5, m, return_eigenvectors=False, **given), np.sort(expected), rtol=1e-8)
        self.assert_alike(shardmat.eigsh(a - 3 * sp.eye(144), 4), spl.eigsh(a - 3 * sp.eye(144), 4)[0], a - 3 * sp.eye(144))

    def test_beginnings_and_what_is_told(self):
        exact = spl.eigsh(self.a, 6, M=self.m, sigma=0)
        w, v, info = shardmat.eigsh(self.a, 6, self.m, which="SM", X=exact[1], return_info=True)
        _, _, cold = shardmat.eigsh(self.a, 6, self.m, which="SM", return_info=True, v0=self.rng.standard_normal(144))
        self.assertLess(info["iterations"], cold["iterations"])
        self.assertTrue(info["converged"])
        self.assertEqual(info["zero_modes"], 0)
        counted = shardmat.eigsh(self.a, 6, self.m, sigma=0.3, return_info=True)[2]
        self.assertIn(counted["missing"], (0, -1))
        iterated = shardmat.eigsh(self.a, 6, self.m, sigma=0.3, inner="minres", return_info=True)
        self.assert_alike(iterated[:2], spl.eigsh(self.a, 6, M=self.m, sigma=0.3)[0], self.a, self.m)
        self.assertEqual(iterated[2]["missing"], -1)
        a, m = shardmat.Matrix.from_scipy(self.a), shardmat.Matrix.from_scipy(self.m)
        self.assert_alike(shardmat.eigsh(a, 6, m, which="SM"), exact[0], self.a, self.m)

    def test_what_is_wrong(self):
        a, m = self.a, self.m
        for error, told, call in (
                (ValueError, "sigma", lambda: shardmat.eigsh(a, 3, m)),
                (ValueError, "'LM'", lambda: shardmat.eigsh(a, 3, sigma=1, which="SM")),
                (ValueError, "which is 'XX'", lambda: shardmat.eigsh(a, 3, which="XX")),
                (ValueError, "k is 0", lambda: shardmat.eigsh(a, 0)),
                (shardmat.UsageError, "inner must be", lambda: shardmat.eigsh(a, 3, m, sigma=1, inner="qr")),
                (ValueError, "Minv", lambda: shardmat.eigsh(a, 3, Minv=a)),
                (ValueError, "rows", lambda: shardmat.eigsh(a, 3, m, which="SM", X=np.ones((3, 2)))),
                (TypeError, "LinearOperator", lambda: shardmat.eigsh(spl.aslinearoperator(a), 3)),
                (shardmat.UsageError, "one size", lambda: shardmat.eigsh(a, 3, sp.eye(3), which="SM")),
                (shardmat.InputError, "positive semidefinite", lambda: shardmat.eigsh(a - 9 * m, 3, m, which="SM")),
                (shardmat.NotConvergedError, "maxiter", lambda: shardmat.eigsh(a, 8, m, which="SM", tol=1e-12, maxiter=1))):
            with self.subTest(told), self.assertRaisesRegex(error, told):
                call()


class Scipy(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(8)
        self.spd = laplacian(14)
        self.convected = sp.csr_matrix(self.spd + 0.5 * sp.eye(196, k=1) - 0.3 * sp.eye(196, k=-14))
        self.indefinite = sp.csr_matrix(self.spd - 1.7 * sp.eye(196))
        self.b = self.rng.standard_normal(196)

    def test_same_answers(self):
        for name, a in (("cg", self.spd), ("minres", self.indefinite), ("gmres", self.convected), ("bicgstab", self.convected)):
            own, other = getattr(shardmat, name), getattr(spl, name)
            jacobi = sp.diags(1 / abs(a.diagonal()))
            for given in (a, a.tocoo(), a.tocsc(), a.tobsr((2, 2)), sp.csr_array(a), a.toarray(), shardmat.Matrix.from_scipy(a)):
                for options in ({}, {"M": jacobi}, {"x0": self.rng.standard_normal(196)}, {"M": spl.aslinearoperator(jacobi)}):
                    x, info = own(given, self.b, rtol=1e-10, **options)
                    self.assertEqual(info, 0)
                    self.assertLessEqual(np.linalg.norm(self.b - a @ x), 1.1e-10 * np.linalg.norm(self.b))
            expected, info = other(a, self.b, **{OF_SCIPY: 1e-11})
            self.assertEqual(info, 0)
            np.testing.assert_allclose(x, expected, atol=1e-6)
            x, info = own(a, self.b.reshape(-1, 1), tol=1e-10, maxiter=2)
            self.assertGreater(info, 0)
            self.assertEqual(x.shape, (196,))
            x, info = own(a, np.zeros(196))
            self.assertTrue(info == 0 and not x.any())
            of_old = list(inspect.signature(other).parameters)
            known = set(inspect.signature(own).parameters)
            self.assertLessEqual(set(of_old) - {"restrt", "atol"}, known)

    def test_callbacks(self):
        for name, a in (("cg", self.spd), ("minres", self.indefinite), ("bicgstab", self.convected)):
            seen = []
            x, _ = getattr(shardmat, name)(a, self.b, callback=lambda xk: seen.append(np.linalg.norm(self.b - a @ xk)) or True)
            self.assertGreater(len(seen), 10)
            self.assertLess(seen[-1], 1e-5 * np.linalg.norm(self.b))
            self.assertGreater(seen[0], seen[-1])
        theirs, ours = [], []
        spl.cg(self.spd, self.b, callback=lambda xk: theirs.append(xk.copy()))
        shardmat.cg(self.spd, self.b, callback=ours.append)
        self.assertLessEqual(abs(len(theirs) - len(ours)), 1)
        for i in (0, 5, 10):
            np.testing.assert_allclose(ours[i], theirs[i], rtol=1e-6, atol=1e-9)
        for kind in ("x", "pr_norm", "legacy", None):
            seen = []
            x, info = shardmat.gmres(self.convected, self.b, rtol=1e-9, restart=15, callback=seen.append, callback_type=kind)
            if kind == "x":
                seen = [np.linalg.norm(self.b - self.convected @ one) / np.linalg.norm(self.b) for one in seen]
            self.assertGreater(len(seen), 15)
            self.assertLess(seen[-1], 1.1e-9)
            self.assertGreater(seen[-2], 1e-9)
        with self.assertRaisesRegex(ValueError, "callback_type is 'y'"):
            shardmat.gmres(self.convected, self.b, callback_type="y")

    def test_options(self):
        x, info = shardmat.gmres(self.convected, self.b, restart=4, maxiter=3)
        self.assertEqual(info, 3)
        x, info = shardmat.cg(self.spd, self.b, rtol=0, atol=1e-3)
        self.assertEqual(info, 0)
        self.assertLessEqual(np.linalg.norm(self.b - self.spd @ x), 1e-3)
        self.assertGreater(np.linalg.norm(self.b - self.spd @ x), 1e-6)
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            x, info = shardmat.minres(self.spd, self.b, shift=1.7, rtol=1e-10, show=True)
        self.assertIn("converged", shown.getvalue())
        np.testing.assert_allclose(self.indefinite @ x, self.b, atol=1e-8)
        few, many = [], []
        shardmat.cg(laplacian(80), np.ones(6400), M="multigrid", callback=few.append)
        shardmat.cg(laplacian(80), np.ones(6400), callback=many.append)
        self.assertLess(5 * len(few), len(many))
        for dtype, expected in ((np.float32, np.float32), (np.float64, np.float64), (np.int64, np.float64)):
            x, info = shardmat.cg(self.spd.astype(dtype), np.ones(196, dtype))
            self.assertEqual((x.dtype, info), (expected, 0))
        self.assertEqual(shardmat.cg(self.spd.astype(np.float32), self.b)[0].dtype, np.float64)
        x, info = shardmat.cg(self.indefinite, self.b)
        self.assertEqual(info, -1)

    def test_refusals(self):
        with self.assertRaisesRegex(ValueError, "Take gmres or bicgstab"):
            shardmat.cg(self.convected, self.b)
        with self.assertRaisesRegex(ValueError, "a vector"):
            shardmat.cg(self.spd, np.ones((196, 2)))
        with self.assertRaisesRegex(TypeError, "not .*LinearOperator; for a LinearOperator take scipy"):
            shardmat.cg(spl.aslinearoperator(self.spd), self.b)
        with self.assertRaisesRegex(ValueError, "real equivalent"):
            shardmat.cg(self.spd.astype(complex), self.b)
        with self.assertRaisesRegex(ZeroDivisionError, "by zero"):
            shardmat.cg(self.spd, self.b, callback=lambda x: 1 // 0)


class Pyamg(unittest.TestCase):
    def test_levels(self):
        a = laplacian(60)
        ml = shardmat.multigrid(a, coarse_size=60)
        self.assertGreaterEqual(len(ml.levels), 3)
        self.assertIs(ml.levels[0].A, a)
        for level, coarse in zip(ml.levels, ml.levels[1:]):
            self.assertEqual(level.P.shape, (level.unknowns, coarse.unknowns))
            self.assertEqual((level.R != level.P.T).nnz, 0)
            self.assertEqual(coarse.A.shape, (coarse.unknowns,) * 2)
            self.assertLessEqual(abs(coarse.A - level.P.T @ level.A @ level.P).max(), 1e-12)
        interior = np.asarray(abs(a @ np.ones(3600))) < 1e-12
        # P interpolates the constant where its smoothing sees no boundary
        coarse, *_ = np.linalg.lstsq(ml.levels[0].P.toarray(), np.ones(3600), rcond=None)
        inside = (interior.reshape(60, 60) & (np.add.outer(abs(np.arange(60) - 30), abs(np.arange(60) - 30)) < 10)).ravel()
        np.testing.assert_allclose((ml.levels[0].P @ coarse)[inside], 1, atol=0.05)
        text = str(ml)
        self.assertIn(f"Number of Levels:     {len(ml.levels)}", text)
        self.assertRegex(text, r"\n     0 +3600 +17760 \[")
        self.assertAlmostEqual(ml.operator_complexity(), sum(one.nonzeros for one in ml.levels) / 17760)
        self.assertGreater(ml.grid_complexity(), 1)
        with self.assertRaisesRegex(AttributeError, "no P"):
            ml.levels[-1].P
        ml.close()
        self.assertIn("closed", repr(ml))

    def test_solve(self):
        a = laplacian(60)
        b = np.random.default_rng(3).standard_normal(3600)
        ml, residuals = shardmat.multigrid(a), []
        counts = {}
        for accel in (None, "cg", "gmres", "fgmres", "bicgstab", "minres"):
            x, info = ml.solve(b, tol=1e-9, accel=accel, residuals=residuals, return_info=True)
            self.assertEqual(info, 0, accel)
            self.assertLessEqual(np.linalg.norm(b - a @ x), 1.1e-9 * np.linalg.norm(b))
            self.assertAlmostEqual(residuals[0], np.linalg.norm(b))
            counts[accel] = len(residuals) - 1
        self.assertLess(counts["cg"], counts[None])
        self.assertLess(max(counts.values()), 40)
        seen = []
        self.assertEqual(ml.solve(b, maxiter=3, tol=1e-14, return_info=True, callback=seen.append)[1], 3)
        self.assertEqual(ml.solve(b, maxiter=3, tol=1e-14, return_info=True, callback=seen.append, accel="cg")[1], 3)
        self.assertEqual(len(seen), 6)
        np.testing.assert_allclose(a @ ml.solve(b, x0=x, tol=1e-9), b, atol=1e-6)
        steps = []
        x, info = spl.cg(a, b, M=ml.aspreconditioner(), callback=steps.append, **{OF_SCIPY: 1e-9})
        self.assertEqual(info, 0)
        self.assertLessEqual(abs(len(steps) - counts["cg"]), 1)
        x, info = shardmat.cg(a, b, M=ml.aspreconditioner(), rtol=1e-9)
        self.assertEqual(info, 0)
        # the size of r does not matter
        cycle = ml.aspreconditioner()
        np.testing.assert_allclose(cycle @ (1e-100 * b) * 1e100, cycle @ b, rtol=1e-3, atol=1e-5)
        self.assertFalse((cycle @ np.zeros(3600)).any())

    def test_blocks_and_modes(self):
        a, xy = elastic_plate(40, 8)
        b = np.ones(a.shape[0])
        options = {"coarse_size": 30, "inner": "f64"}
        def iterations(*given, **more):
            residuals = []
            shardmat.multigrid(*given, **options, **more).solve(b, tol=1e-8, accel="cg", residuals=residuals)
            return len(residuals)

        bsr = a.tobsr((2, 2))
        few, many = iterations(bsr, rigid_modes(xy)), iterations(bsr)
        self.assertLess(1.3 * few, many)
        self.assertLessEqual(abs(iterations(bsr, coordinates=xy) - few), 1)
        ml = shardmat.multigrid(bsr, rigid_modes(xy), **options)
        self.assertEqual(ml.levels[1].unknowns % 3, 0)
        scalar = shardmat.multigrid(sp.csr_matrix(sp.kron(laplacian(30), sp.eye(2))).tobsr((2, 2)), **options)
        self.assertEqual(scalar._matrix.info()["node_block_size"], 2)

    def test_options_of_other_libraries(self):
        """The table of the page "If you know another library" names options that Python has, too."""
        page = (pathlib.Path(__file__).parents[2] / "tools" / "other-libraries.md").read_text()
        table = page[page.index("| here | pyamg"):]
        options = re.findall(r"^\| `--([a-z-]+)[^|]*", table, re.M)
        self.assertGreaterEqual(len(options), 13)
        self.assertLessEqual(len(table.splitlines()), 25)
        known = shardmat.solver_settings() + "coordinates: "
        for name in options:
            self.assertRegex(known, rf"(?m)(^|\b){name.replace('-', '_')}: ")

    def test_refusals(self):
        with self.assertRaisesRegex(ValueError, "symmetric"):
            shardmat.multigrid(tridiagonal(100))
        with self.assertRaisesRegex(ValueError, "cycle is 'W'"):
            shardmat.multigrid(laplacian(8)).aspreconditioner("W")
        with self.assertRaisesRegex(TypeError, "max_coarse"):
            shardmat.multigrid(laplacian(8), max_coarse=10)


if __name__ == "__main__":
    unittest.main()
