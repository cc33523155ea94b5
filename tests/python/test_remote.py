"""Matrices of an unchanged program on a service: the environment variable SHARDMAT_REMOTE."""

import gc
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.io import mmwrite
from scipy.sparse.linalg import eigsh
from service_client import CG, ServiceClient

import shardmat
from support import LIMIT


class Remote(ServiceClient):
    @classmethod
    def options(cls):
        return ("--upload-limit", "64MB")

    def setUp(self):
        super().setUp()
        folder = pathlib.Path(tempfile.mkdtemp(prefix="shardmat_remote_"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.here = folder
        variable = unittest.mock.patch.dict(os.environ, {"SHARDMAT_REMOTE": str(self.server.state)})
        variable.start()
        self.addCleanup(variable.stop)

    def names(self):
        return sorted(one["name"] for one in self.service.matrices())

    def file(self, matrix, name="local file.mtx"):
        mmwrite(self.here / name, matrix)
        return self.here / name

    def test_arrays(self):
        before = self.names()
        for dtype in ("float64", "float32"):
            a = self.grid.astype(dtype)
            with shardmat.Matrix.from_scipy(a) as A:
                self.assertIsInstance(A, shardmat.Matrix)
                self.assertEqual((A.shape, A.own_shape, A.nnz, A.dtype, A.ndim), (a.shape, a.shape, a.nnz, np.dtype(dtype), 2))
                self.assertEqual((A.T.shape, A.T.nnz, A.T.dtype), (a.shape[::-1], a.nnz, np.dtype(dtype)))
                self.assertIn(str(self.server.state), repr(A))
                self.assertEqual(len(self.names()), len(before) + 1)
                there = next(one["name"] for one in self.service.matrices() if one["name"] not in before)
                for k in (None, 3):
                    x = self.columns(k, n=a.shape[1], dtype=dtype)
                    y = A @ x
                    self.assertEqual(y.tobytes(order="F"), self.expected(x, there))
                    np.testing.assert_array_equal(A.T @ x, self.service.matrix(there).T @ x)
                    b = self.columns(k, n=a.shape[0], dtype=dtype)
                    rtol = 1e-9 if dtype == "float64" else 1e-4
                    u = A.solve(b, rtol=rtol, **CG)
                    self.assertLessEqual(np.linalg.norm(b - a @ u), 2 * rtol * np.linalg.norm(b) * (1 if k is None else k))
                    np.testing.assert_array_equal(A.solve(b, u, rtol=2 * rtol, **CG), u)
            self.assertEqual(self.names(), before)  # they go with the matrix
            with self.assertRaisesRegex(ValueError, "closed"):
                A @ x
            self.assertIn("closed", repr(A))
        A = shardmat.Matrix.from_scipy(self.wide)
        self.assertEqual((A @ self.columns()).shape, (400,))
        self.assertEqual((A.T @ np.ones(400)).shape, (975,))
        del A
        gc.collect()
        self.assertEqual(self.names(), before)

    def test_they_go_with_the_program(self):
        before = self.names()
        program = ("import scipy.sparse, shardmat\nA = shardmat.Matrix.from_scipy(scipy.sparse.eye(5) * 2)\n"
                   "print((A @ ([1.0] * 5)).tolist())\nprint(len(shardmat.connect().matrices()))")
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                               timeout=LIMIT)
        self.assertEqual((ended.returncode, ended.stdout.split("\n")[:2], ended.stderr), (0, [str([2.0] * 5), str(len(before) + 1)], ""))
        self.assertEqual(self.names(), before)

    def test_files(self):
        before = {one["source"] for one in self.service.get_json("/v1/library")["files"]}
        sent = lambda: [one["source"] for one in self.service.get_json("/v1/library")["files"]
                        if one["source"] not in before and one["source"].endswith(".mtx")]
        y = []
        for factor in (1, 2, 1):  # changed, and back
            path = self.file(sp.csr_matrix([[factor, 0.0], [3.0, 4.0]]))
            for _ in range(2):
                with shardmat.Matrix.from_file(path) as A:
                    self.assertEqual((A.shape, A.nnz), ((2, 2), 3))
                    y.append((A @ np.ones(2)).tolist())
                    np.testing.assert_allclose(A.solve([1.0, 7.0], solver="direct", preconditioner="direct"), [1 / factor, (7 - 3 / factor) / 4])
        self.assertEqual(y, [[1, 7]] * 2 + [[2, 7]] * 2 + [[1, 7]] * 2)
        self.assertEqual(len(sent()), 2)
        names = self.names()
        self.assertEqual(sum(name.startswith("remote-") for name in names), 2)  # they stay, and are found again
        x = self.columns(n=self.grid.shape[1])
        for name in ("grid", "grid.h5", "library:grid.h5", self.library / "grid.h5"):  # the service has it
            A = shardmat.Matrix.from_file(name)
            self.assertEqual((A @ x).tobytes(), self.expected(x, "grid"))
        wide = shardmat.Matrix.from_file("wide.h5")
        self.assertEqual((wide.shape, (wide.T @ np.ones(400)).shape), ((400, 975), (975,)))
        with self.assertRaisesRegex(shardmat.Error, "library"):
            shardmat.Matrix.from_file("none.h5")
        narrow = shardmat.Matrix.from_file("grid.h5", dtype="float32", drop_rows=True)
        self.assertEqual(narrow.dtype, np.float32)
        with self.assertRaisesRegex(shardmat.Error, "solvable"):
            narrow.solve(x)
        self.assertEqual(len(sent()), 2)

    def test_the_commands_find_the_same_matrix(self):
        path = self.file(sp.csr_matrix([[5.0, 0.0], [3.0, 4.0]]), "same matrix.mtx")
        shardmat.Matrix.from_file(path).close()
        names = self.names()
        for turn in ("solve", "multiply"):
            program = [os.environ["TEST_PROGRAM"], turn, str(path), "--remote", str(self.server.state)]
            ended = subprocess.run(program + (["--solver", "direct"] if turn == "solve" else []), capture_output=True, text=True,
                                   timeout=LIMIT)
            self.assertEqual(ended.returncode, 0, ended)
        self.assertEqual(self.names(), names)

    def test_scipy_takes_it(self):
        A = shardmat.Matrix.from_file("grid.h5")
        self.addCleanup(A.close)
        top = eigsh(A.as_linear_operator(), 1, return_eigenvectors=False)
        np.testing.assert_allclose(top, eigsh(self.grid, 1, return_eigenvectors=False), rtol=1e-8)

    def test_functions_that_are_called_as_those_of_scipy(self):
        b, before = self.columns(n=3600), self.names()
        with shardmat.Matrix.from_file("grid.h5") as A:
            for given in (A, self.grid):
                for method, options in ((shardmat.cg, {"M": "jacobi"}), (shardmat.cg, {}), (shardmat.bicgstab, {"M": "multigrid"}),
                                        (shardmat.gmres, {"restart": 30}), (shardmat.minres, {}), (shardmat.cg, {"x0": self.columns(n=3600, seed=2)[:, None]})):
                    x, info = method(given, b, rtol=1e-8, **options)
                    self.assertEqual((info, x.shape), (0, b.shape))
                    self.assertLessEqual(np.linalg.norm(b - self.grid @ x), 2e-8 * np.linalg.norm(b))
                x, info = shardmat.cg(given, b, maxiter=3)
                self.assertEqual((info, x.shape), (3, b.shape))
                self.assertEqual(shardmat.gmres(given, b, restart=2, maxiter=3)[1], 3)
                with self.assertRaises(ValueError):
                    shardmat.cg(sp.csr_matrix([[1.0, 2.0], [0.0, 1.0]]), np.ones(2))
        self.assertEqual(self.names(), before)

    def test_eigenvalues(self):
        masses, before = sp.diags([0.1, 1, 0.1], [-1, 0, 1], self.wide.shape[:1] * 2).tocsr(), self.names()
        k = (self.matrix[:400, :400] + self.matrix[:400, :400].T).tocsr()
        every, pairs = scipy.linalg.eigh(k.toarray()), scipy.linalg.eigh(k.toarray(), masses.toarray())
        shift = pairs[0][20] + 0.3 * (pairs[0][21] - pairs[0][20])
        nearest = np.sort(pairs[0][np.argsort(np.abs(pairs[0] - shift))[:3]])
        with shardmat.Matrix.from_scipy(k) as K, shardmat.Matrix.from_scipy(masses) as M:
            for a, m in ((k, masses), (K, M)):
                w, v = shardmat.eigsh(a, 4, which="LA")
                np.testing.assert_allclose(w, every[0][-4:], rtol=1e-8)
                np.testing.assert_allclose(k @ v, v * w, atol=1e-4 * abs(w).max())
                w, v, info = shardmat.eigsh(a, 3, m, shift, return_info=True)
                np.testing.assert_allclose(w, nearest, rtol=1e-8)
                np.testing.assert_allclose(v.T @ (masses @ v), np.identity(3), atol=1e-8)
                self.assertEqual((info["converged"], info["confirmed"], info["missing"]), (True, True, 0))
                for begin in ({"v0": v[:, 0]}, {"X": v}):
                    np.testing.assert_allclose(shardmat.eigsh(a, 3, m, shift, **begin)[0], nearest, rtol=1e-8)
                    with self.assertRaisesRegex(shardmat.UsageError, "SHARDMAT_REMOTE"):
                        shardmat.eigsh(a, 3, which="LA", **begin)  # Lanczos
                np.testing.assert_allclose(shardmat.eigsh(a, 2, which="BE", return_eigenvectors=False), every[0][[0, -1]], rtol=1e-8)
                with self.assertRaises(shardmat.NotConvergedError) as caught:
                    shardmat.eigsh(a, 2, which="LA", tol=1e-300, maxiter=10)
                self.assertEqual((caught.exception.x.shape, len(caught.exception.results[0]["values"])), ((400, 2), 2))
        del K, M, a, m
        gc.collect()
        self.assertEqual(self.names(), before)

    def test_what_does_not_converge(self):
        with shardmat.Matrix.from_file("grid.h5") as A, self.assertRaises(shardmat.NotConvergedError) as caught:
            A.solve(np.ones(A.shape[0]), max_iterations=2, **CG)
        self.assertEqual(caught.exception.x.shape, (A.shape[0],))
        self.assertEqual(caught.exception.results[0]["iterations"], 2)

    def test_what_is_refused(self):
        A = shardmat.Matrix.from_file("grid.h5")
        self.addCleanup(A.close)
        n, eye = A.shape[0], sp.eye(4, format="csr")
        context = shardmat.Context()
        self.addCleanup(context.close)
        calls = {
            "context of file": lambda: shardmat.Matrix.from_file("grid.h5", context=context),
            "context of arrays": lambda: shardmat.Matrix.from_scipy(eye, context=context),
            "rows": lambda: shardmat.Matrix.from_rows(eye),
            "triplets": lambda: shardmat.Matrix.from_triplets([0], [0], [1.0], (1, 1)),
            "updatable": lambda: shardmat.Matrix.from_scipy(eye, updatable=True),
            "storage": lambda: shardmat.Matrix.from_file("grid.h5", storage="symmetric"),
            "float16": lambda: shardmat.Matrix.from_scipy(eye, dtype="float16"),
            "product": lambda: A.product(2),
            "product of the transpose": lambda: A.T.product(2),
            "solver": lambda: A.solver("cg"),
            "function": lambda: A.solve(np.ones(n), preconditioner=lambda r: r),
            "vectors": lambda: A.solve(np.ones(n), preconditioner="multigrid", near_null_space=np.ones((n, 1))),
            "setting": lambda: A.solve(np.ones(n), no_such_setting=3),
            "values": lambda: A.update_values(np.ones(A.nnz)),
            "rows and columns": lambda: A.zero_rows_columns([0]),
            "ids": lambda: A.row_ids(),
            "context": lambda: A.context,
            "first vectors": lambda: shardmat.eigsh(A, v0=np.ones(n)),
            "nodes": lambda: shardmat.eigsh(A, coordinates=np.ones((n, 3))),
            "eigenvalues": lambda: shardmat.eigsh(A, inner="none such", k=300),
            "callback": lambda: shardmat.cg(eye, np.ones(4), callback=print),
            "callback of gmres": lambda: shardmat.gmres(A, np.ones(n), callback=print, callback_type="x"),
            "norms of gmres": lambda: shardmat.gmres(A, np.ones(n), callback=print, callback_type="pr_norm"),
            "operator": lambda: shardmat.cg(A, np.ones(n), M=lambda r: r),
            "factors": lambda: shardmat.spsolve(eye, np.ones(4)),
        }
        before = self.names()
        for name, call in calls.items():
            with self.subTest(name), self.assertRaisesRegex(shardmat.UsageError, "SHARDMAT_REMOTE"):
                call()
        gc.collect()
        self.assertEqual(self.names(), before)

    def test_here(self):
        before = self.names()
        for value in ("here", ""):
            with unittest.mock.patch.dict(os.environ, {"SHARDMAT_REMOTE": value}):
                A = shardmat.Matrix.from_scipy(sp.eye(4, format="csr"))
                self.assertIs(type(A), shardmat.Matrix)
                np.testing.assert_array_equal(A @ np.ones(4), np.ones(4))
        self.assertEqual(self.names(), before)

    def test_nobody_listens(self):
        with unittest.mock.patch.dict(os.environ, {"SHARDMAT_REMOTE": str(self.here / "none.sock")}):
            with self.assertRaises(shardmat.service.UnreachableError):
                shardmat.Matrix.from_scipy(sp.eye(4, format="csr"))


if __name__ == "__main__":
    unittest.main()
