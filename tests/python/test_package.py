#!/usr/bin/env python3
"""The Python package on one process: products, solvers, SciPy's methods, DLPack, errors, threads, signals, fork."""

import ast
import concurrent.futures
import copy
import faulthandler
import inspect
import os
import pathlib
import pickle
import re
import signal
import subprocess
import sys
import threading
import unittest

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl

import shardmat
from checks import refused


def tridiagonal(n, dtype=np.float64):
    return sp.diags([-1.0, 2.5, -0.5], [-1, 0, 1], shape=(n, n), dtype=dtype).tocsr()


class PlainDlpack:
    """An array that has nothing but DLPack."""

    def __init__(self, array):
        self._array = array
        self.shape, self.ndim = array.shape, array.ndim

    def __dlpack__(self, stream=None):
        return self._array.__dlpack__(stream=stream)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class Products(unittest.TestCase):
    def test_every_format_of_scipy(self):
        a = sp.random(37, 23, 0.2, random_state=1)
        x = np.random.default_rng(2).random((23, 3))
        for kind in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia"):
            np.testing.assert_allclose(shardmat.Matrix.from_scipy(a.asformat(kind)) @ x, a @ x, atol=1e-14)
        twice = sp.coo_matrix(([1.0, 2.0], ([0, 0], [1, 1])), shape=(2, 2))
        np.testing.assert_array_equal(shardmat.Matrix.from_scipy(twice) @ np.ones(2), [3, 0])

    def test_types_and_layouts(self):
        a = tridiagonal(40)
        for dtype in (np.float64, np.float32):
            m = shardmat.Matrix.from_scipy(a.astype(dtype))
            self.assertEqual(m.dtype, dtype)
            wide = np.random.default_rng(3).random((40, 8))
            for x in (wide, np.asfortranarray(wide), wide[:, ::2], wide[::-1], wide[:, 0], wide.astype(np.float32),
                      np.arange(40), [1] * 40):
                y = m @ x
                self.assertEqual(y.dtype, dtype)
                np.testing.assert_allclose(y, a @ np.asarray(x), rtol=1e-5, atol=1e-5)
        half = shardmat.Matrix.from_scipy(a, dtype="float16")
        np.testing.assert_allclose(half @ np.ones((40, 2)), a @ np.ones((40, 2)), atol=1e-3)

    def test_out_alpha_beta(self):
        a, x = tridiagonal(30), np.ones((30, 2))
        with shardmat.Matrix.from_scipy(a) as m, m.product(2) as product:
            y = np.full((30, 2), 7.0)
            self.assertIs(product.multiply(x, out=y, alpha=2, beta=-1), y)
            np.testing.assert_allclose(y, 2 * (a @ x) - 7)
            self.assertEqual(product.info()["columns"], 2)
            with self.assertRaisesRegex(ValueError, "read-only"):
                y.flags.writeable = False
                product.multiply(x, out=y)
        with self.assertRaisesRegex(ValueError, "closed"):
            m @ x
        with self.assertRaisesRegex(ValueError, "closed"):
            product.multiply(x)
        with shardmat.Matrix.from_scipy(a).solver("gmres") as solver:
            pass
        with self.assertRaisesRegex(ValueError, "solver is closed"):
            solver.solve(np.ones(30))

    def test_dlpack(self):
        a, x = tridiagonal(30), np.random.default_rng(4).random(30)
        m = shardmat.Matrix.from_scipy(a)
        out = shardmat.empty(30)
        m.product().multiply(PlainDlpack(x), out=out)
        np.testing.assert_allclose(np.from_dlpack(out), a @ x)
        again = np.zeros(30)
        m.product().multiply(out, out=PlainDlpack(again))
        np.testing.assert_allclose(again, a @ (a @ x))
        np.testing.assert_allclose(m @ PlainDlpack(x), a @ x)
        kept = np.from_dlpack(shardmat.empty((5, 2), "float32"))  # keeps the memory
        self.assertEqual((kept.shape, kept.dtype), ((5, 2), np.float32))
        out.__dlpack__()  # nobody takes it

    def test_describes_itself(self):
        m = shardmat.Matrix.from_scipy(tridiagonal(30))
        self.assertEqual(m.info()["backend"], m.context.info()["backend"])
        self.assertIn("<td>(30, 30)</td>", m._repr_html_())
        np.testing.assert_array_equal(m.row_ids(), np.arange(30))

    def test_file_and_transpose(self):
        m = shardmat.Matrix.from_file("poisson7:n=5")
        x = np.random.default_rng(5).random(125)
        np.testing.assert_allclose(m.T @ x, m @ x)  # it is symmetric
        shifted = sp.random(20, 30, 0.3, random_state=6).tocsr()
        rectangular = shardmat.Matrix.from_scipy(shifted)
        np.testing.assert_allclose(rectangular.T @ np.arange(20.0), shifted.T @ np.arange(20.0))
        for back in (m, rectangular):
            self.assertIs(back.T.T, back)
            self.assertIs(back.T.T.T, back.T)
        with self.assertRaisesRegex(NotImplementedError, "keep it"):
            shardmat.Matrix.from_scipy(shifted).T.T
        changing = shardmat.Matrix.from_scipy(shifted, updatable=True)
        turned = changing.T
        changing.update_values(2 * shifted.data)
        self.assertIs(changing.T.T, changing)
        turned.update_values(turned.info()["nnz"] * [1.0])  # no longer the transpose of the other
        with self.assertRaisesRegex(NotImplementedError, "before its values changed"):
            turned.T

    def test_no_columns(self):
        a = sp.random(20, 30, 0.3, random_state=6).tocsr()
        for dtype in (np.float64, np.float32):
            m = shardmat.Matrix.from_scipy(a.astype(dtype))
            for x in (np.zeros((30, 0), dtype), np.zeros((30, 0))):
                y = m @ x
                self.assertEqual((y.shape, y.dtype), ((20, 0), dtype))
        with self.assertRaises(ValueError):
            m @ np.zeros((20, 0))


class SmallTypes(unittest.TestCase):
    """Sums of entries of the same place, in types that cannot hold them."""

    TYPES = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64, np.uint64, bool, np.float32, np.float64, np.longdouble)

    def cases(self):
        """(matrix with duplicates, its dense values) for every type: rows (5, 4), columns up to 6."""
        for kind in self.TYPES:
            most = 1 if kind is bool else 0.75 * np.iinfo(kind).max if np.issubdtype(kind, np.integer) else 1.5
            most = min(most, 2**40)
            place = np.array([1, 0, 0, 2, 2, 2, 5, 0, 3, 3])
            data = np.array([most, most, most, most, most, most / 2, 1, 0, most, most]).astype(kind)
            rows = np.repeat(np.arange(4), [3, 4, 0, 3])
            dense = np.zeros((4, 6))
            np.add.at(dense, (rows, place), data.astype(float))
            csr = sp.csr_matrix((data, place, [0, 3, 7, 7, 10]), shape=(4, 6))
            coo = sp.coo_matrix((data, (rows, place)), shape=(4, 6))
            csc = sp.csc_matrix((data, place, [0, 3, 7, 7, 10]), shape=(6, 4))
            yield from ((csr, dense), (coo, dense), (csc, dense.T), (sp.csr_array(csr), dense), (sp.coo_array(coo), dense))

    def test_sums_of_duplicates(self):
        for given, dense in self.cases():
            before = given.data.copy()
            x = np.random.default_rng(1).random(dense.shape[1])
            for m in (shardmat.Matrix.from_scipy(given), shardmat.Matrix.from_rows(given)):
                np.testing.assert_allclose(m @ x, dense @ x, rtol=1e-6, err_msg=f"{given.dtype} {given.format}")
                self.assertEqual(m.dtype, np.float32 if given.dtype == np.float32 else np.float64)
            np.testing.assert_allclose(shardmat.Matrix.from_scipy(given).T @ np.arange(dense.shape[0]),
                                       dense.T @ np.arange(dense.shape[0]), rtol=1e-6)
            batch = shardmat.Batch.from_scipy([given, given], dtype="float64")
            np.testing.assert_allclose(batch @ np.tile(x, 2), np.tile(dense @ x, 2), rtol=1e-6)
            np.testing.assert_array_equal(given.data, before)
            self.assertFalse(given.has_canonical_format)

    def test_many_of_one(self):
        for kind, count in ((np.uint8, 300), (np.int16, 40000), (bool, 5)):
            zeros = np.zeros(count, np.int32)
            given = sp.coo_matrix((np.ones(count, kind), (zeros, zeros)), shape=(1, 1))
            self.assertEqual((shardmat.Matrix.from_scipy(given) @ np.ones(1))[0], count)
            self.assertEqual((shardmat.Matrix.from_triplets(zeros, zeros, np.ones(count, kind), (1, 1), dtype="float64")
                              @ np.ones(1))[0], count)

    def test_new_values(self):
        for given, dense in self.cases():
            if given.format == "coo":
                continue
            m = shardmat.Matrix.from_scipy(given, updatable=True)
            turned, x = m.T, np.random.default_rng(2).random(dense.shape[1])
            rows = given.tocsr().copy()
            m.update_values(rows.data[::-1].copy())  # all of them, of a small type
            arrays = rows.data[::-1].astype(float), rows.indices.copy(), rows.indptr.copy()  # sum_duplicates() changes them
            other = sp.csr_matrix(arrays, shape=rows.shape)
            np.testing.assert_allclose(m @ x, other @ x, rtol=1e-6)
            np.testing.assert_allclose(turned @ np.arange(dense.shape[0]), other.T @ np.arange(dense.shape[0]), rtol=1e-6)
            other.sum_duplicates()
            m.update_values(2 * other.data)
            np.testing.assert_allclose(m @ x, 2 * (other @ x), rtol=1e-6)
            with self.assertRaises(shardmat.UsageError):
                m.update_values(other.data[1:])

    def test_vectors_and_graphs(self):
        a = (tridiagonal(60) + tridiagonal(60).T).tocsr()
        m = shardmat.Matrix.from_scipy(a)
        for kind in (np.int8, np.uint8, np.int16, np.uint16, bool, np.float16, np.longdouble):
            x = (100 * np.random.default_rng(3).random((60, 2))).astype(kind)
            np.testing.assert_allclose(m @ x, a @ x.astype(float))
            np.testing.assert_allclose(m.solve(x[:, 0], x[:, 1], rtol=1e-12), spl.spsolve(a.tocsc(), x[:, 0].astype(float)))
        edges = [0, 0, 0, 1, 1, 2, 2], [1, 1, 2, 0, 2, 0, 0]
        links, wide = (sp.coo_matrix((np.full(7, 100, kind), edges), shape=(3, 3)) for kind in (np.int8, float))
        np.testing.assert_array_equal(shardmat.pagerank(links), shardmat.pagerank(wide))
        refused(ValueError, "real numbers", lambda: shardmat.pagerank(links, restarts=np.ones(3) * 1j))


class Factors(unittest.TestCase):
    """alpha = 0 leaves x unread and beta = 0 leaves y unread, as in BLAS."""

    def test_nan_is_not_multiplied_by_zero(self):
        a = tridiagonal(40)
        m = shardmat.Matrix.from_scipy(a)
        for columns in (1, 4):
            shape = (40,) if columns == 1 else (40, columns)
            p, y = m.product(columns), np.random.default_rng(4).random(shape)
            for beta, expected in ((2.0, 2 * y), (0.0, 0 * y)):
                out = y.copy()
                p.multiply(np.full(shape, np.nan), out, alpha=0.0, beta=beta)
                np.testing.assert_array_equal(out, expected)
            out = np.full(shape, np.nan)
            p.multiply(y, out, alpha=1.0, beta=0.0)
            np.testing.assert_allclose(out, a @ y)

    def test_out_in_fortran_order(self):
        a = tridiagonal(40)
        p, rng = shardmat.Matrix.from_scipy(a).product(3), np.random.default_rng(6)
        x, before = rng.random((40, 3)), np.asfortranarray(rng.random((40, 3)))
        for given in (x, np.asfortranarray(x)):
            for beta in (0.0, 0.5):
                out = before.copy(order="F")
                self.assertIs(p.multiply(given, out, beta=beta), out)
                np.testing.assert_allclose(out, a @ x + beta * before)

    def test_of_batches(self):
        a = [tridiagonal(5), tridiagonal(3)]
        batch, y = shardmat.Batch.from_scipy(a), np.random.default_rng(5).random((8, 2))
        out = y.copy()
        batch.multiply(np.full((8, 2), np.nan), out, alpha=0.0, beta=3.0)
        np.testing.assert_allclose(out, 3 * y, rtol=1e-6)


class Values(unittest.TestCase):
    def test_new_values_and_the_transpose(self):
        a = tridiagonal(50)
        m = shardmat.Matrix.from_scipy(a, updatable=True)
        x = np.random.default_rng(7).random(50)
        np.testing.assert_allclose(m.T @ x, a.T @ x)
        a.data *= np.arange(1, a.nnz + 1)
        m.update_values(a.data)
        np.testing.assert_allclose(m @ x, a @ x)
        np.testing.assert_allclose(m.T @ x, a.T @ x)
        m.update_values(PlainDlpack(np.ascontiguousarray(a.data[::-1])))
        with self.assertRaises(shardmat.UsageError):
            m.update_values([1.0])
        fixed = shardmat.Matrix.from_scipy(a)
        for change in (lambda: fixed.update_values(a.data), lambda: fixed.zero_rows_columns([0])):
            with self.assertRaisesRegex(shardmat.UsageError, "without room for new values.*Python: updatable=True; C"):
                change()

    def test_new_values_in_the_order_given(self):
        half = sp.random(50, 50, 0.2, random_state=5).tocsr()
        product = (half @ half).tocsr()
        self.assertFalse(product.has_sorted_indices)
        x = np.random.default_rng(6).random(50)
        for given in (product, sp.csr_array(product)):
            m = shardmat.Matrix.from_scipy(given, updatable=True)
            np.testing.assert_allclose(m.T @ x, product.T @ x)
            changed = product.copy()
            changed.data *= np.arange(1, product.nnz + 1)
            m.update_values(changed.data)
            np.testing.assert_allclose(m @ x, changed @ x)
            np.testing.assert_allclose(m.T @ x, changed.T @ x)
        self.assertFalse(product.has_sorted_indices)

    def test_zero_rows_columns(self):
        a = tridiagonal(50)
        m = shardmat.Matrix.from_scipy(a, updatable=True)
        x = np.random.default_rng(8).random(50)
        b = a @ x
        m.zero_rows_columns([0, 17, 17, 49], 3, x, b)
        dense = a.toarray()
        dense[[0, 17, 49]] = 0
        dense[:, [0, 17, 49]] = 0
        dense[[0, 17, 49], [0, 17, 49]] = 3
        np.testing.assert_allclose(m @ np.eye(50), dense)
        np.testing.assert_allclose(b, dense @ x, atol=1e-14)
        with self.assertRaisesRegex(shardmat.UsageError, "row 50"):
            m.zero_rows_columns([50])
        hollow = shardmat.Matrix.from_scipy(sp.csr_matrix(([1.0], ([0], [1])), shape=(2, 2)), updatable=True)
        with self.assertRaisesRegex(shardmat.InputError, "row 0 stores no entry on its diagonal"):
            hollow.zero_rows_columns([0])
        hollow.zero_rows_columns([0], 0)
        np.testing.assert_array_equal(hollow @ np.ones(2), [0, 0])


class Solvers(unittest.TestCase):
    def test_columns_monitor_history(self):
        a = (tridiagonal(60) + tridiagonal(60).T).tocsr()
        x = np.random.default_rng(9).random((60, 3))
        seen = []
        m = shardmat.Matrix.from_scipy(a)
        solver = m.solver(columns=3, rtol=1e-12, variant="single_reduction", monitor=lambda n, norms: seen.append((n, len(norms))))
        np.testing.assert_allclose(solver.solve(a @ x), x, rtol=1e-9)
        self.assertEqual(len(solver.results), 3)
        self.assertEqual(len(solver.results[1]["history"]), solver.results[1]["iterations"] + 1)
        self.assertTrue(seen and all(columns == 3 for _, columns in seen))

    def test_help_lists_the_options(self):
        m = shardmat.Matrix.from_scipy(tridiagonal(60) + tridiagonal(60).T)
        given = {"solver": "cg", "preconditioner": "jacobi", "rtol": 1e-3, "atol": 1e-9, "divergence_tolerance": 10.0,
                 "max_iterations": 7, "restart": 5, "columns": 2, "node_block_size": 1, "degree": 3, "null_space": "none",
                 "residual_norm": "preconditioned", "assume_symmetric": True, "variant": "classic", "penalty_rows": "keep",
                 "monitor": print}
        for documented in (shardmat.Solver, m.solve, m.solver):
            self.assertEqual(sorted(re.findall(r"^ *(\w+): ", documented.__doc__, re.M)), sorted(given))
        for name, value in given.items():
            m.solver(**{name: value}).close()
        with self.assertRaisesRegex(TypeError, "no option 'tol'.*help"):
            m.solver(tol=1e-3)

    def test_b_of_zeros_has_the_answer_zero(self):
        a = (tridiagonal(60) + tridiagonal(60).T).tocsr()
        m = shardmat.Matrix.from_scipy(a)
        for name in ("cg", "gmres", "fgmres", "bicgstab", "minres"):
            self.assertTrue((m.solve(np.zeros(60), np.full(60, np.nan), solver=name) == 0).all(), name)
            b, x0 = np.zeros((60, 3)), np.full((60, 3), 7.0)
            b[:, 1], x0[:, [0, 2]] = np.random.default_rng(1).random(60), [np.nan, np.inf]
            x = m.solver(name, columns=3, rtol=1e-11).solve(b, x0)
            self.assertTrue((x[:, [0, 2]] == 0).all(), name)
            np.testing.assert_allclose(x[:, 1], spl.spsolve(a.tocsc(), b[:, 1]), rtol=1e-8)

    def test_what_a_null_space_takes_from_b(self):
        n = 50
        a = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(n, n)).tolil()
        a[0, 0] = a[n - 1, n - 1] = 1
        b = np.random.default_rng(2).random(n)
        m = shardmat.Matrix.from_scipy(a.tocsr())
        for name in ("cg", "minres", "gmres"):
            solver = m.solver(name, null_space="constant", rtol=1e-10)
            x = solver.solve(b)
            (result,) = solver.results
            self.assertAlmostEqual(result["removed_from_b"], abs(b.mean()) * np.sqrt(n), places=12)
            self.assertAlmostEqual(result["norm_of_b"], np.linalg.norm(b - b.mean()), places=12)
            self.assertAlmostEqual(np.linalg.norm(b - a @ x), np.hypot(result["true_residual"], result["removed_from_b"]), places=12)
        plain = m.solver("gmres", rtol=1e-10)
        plain.solve(a @ b)
        self.assertEqual(plain.results[0]["removed_from_b"], 0)

    def test_tolerance_that_no_one_gave(self):
        a = (tridiagonal(60) + tridiagonal(60).T).tocsr()
        b = np.ones(60)
        for dtype, expected in ((np.float64, 1e-8), (np.float32, 1e-5)):
            x = shardmat.Matrix.from_scipy(a.astype(dtype)).solve(b.astype(dtype))
            self.assertLessEqual(np.linalg.norm(b - a @ x), 1.1 * expected * np.linalg.norm(b))

    def test_not_converged(self):
        a = shardmat.Matrix.from_file("poisson7:n=8")
        with self.assertRaises(shardmat.NotConvergedError) as caught:
            a.solve(np.ones(512), max_iterations=2)
        self.assertEqual(caught.exception.results[0]["iterations"], 2)
        self.assertTrue(np.any(caught.exception.x))
        with self.assertRaisesRegex(shardmat.UsageError, "divergence tolerance"):
            a.solver(divergence_tolerance=0.5)
        with self.assertRaisesRegex(shardmat.UsageError, "bicgstab.*choose among auto, cg"):
            a.solve(np.ones(512), solver="bicgstb")
        with self.assertRaisesRegex(TypeError, "tolerance"):
            a.solve(np.ones(512), tolerance=1)

    def test_scipy(self):
        a = (tridiagonal(80) + tridiagonal(80).T).tocsr()
        m = shardmat.Matrix.from_scipy(a)
        b = a @ np.ones(80)
        tolerance = "rtol" if "rtol" in inspect.signature(spl.gmres).parameters else "tol"  # SciPy renamed it in 1.12
        x, info = spl.gmres(m, b, atol=0, **{tolerance: 1e-10})
        self.assertEqual(info, 0)
        np.testing.assert_allclose(x, np.ones(80), rtol=1e-7)
        np.testing.assert_allclose(spl.eigsh(m, k=3, return_eigenvectors=False), spl.eigsh(a, k=3, return_eigenvectors=False))
        tall = sp.vstack([a, sp.eye(80)]).tocsr()
        of_tall = shardmat.Matrix.from_scipy(tall)
        np.testing.assert_allclose(spl.lsqr(of_tall, tall @ np.ones(80), atol=1e-12, btol=1e-12)[0], np.ones(80))


class Errors(unittest.TestCase):
    def test_kinds(self):
        a = shardmat.Matrix.from_scipy(tridiagonal(10))
        with self.assertRaisesRegex(shardmat.UsageError, "11 × 1"):
            a @ np.ones(11)
        with self.assertRaisesRegex(ValueError, "complex"):
            a @ np.ones(10, complex)
        with self.assertRaisesRegex(ValueError, "complex"):
            shardmat.Matrix.from_scipy(sp.eye(3) * 1j)
        with self.assertRaisesRegex(shardmat.InputError, "nonexistent"):
            shardmat.Matrix.from_file("/nonexistent.mtx")
        with self.assertRaisesRegex(shardmat.InputError, "NaN|nan|finite"):
            shardmat.Matrix.from_scipy(sp.eye(3) * np.nan)
        with self.assertRaisesRegex(TypeError, "kernl"):
            shardmat.Matrix.from_scipy(sp.eye(3), kernl="csr_host")
        with self.assertRaisesRegex(TypeError, "sparse"):
            shardmat.Matrix.from_scipy(np.eye(3))
        with self.assertRaisesRegex(NotImplementedError, "transpose"):
            shardmat.Matrix.from_rows(tridiagonal(3)).T
        self.assertTrue(issubclass(shardmat.ResourcesError, MemoryError))

    def test_cannot_be_pickled(self):
        m = shardmat.Matrix.from_scipy(sp.eye(3))
        for take in (pickle.dumps, copy.copy, copy.deepcopy):
            with self.assertRaisesRegex(TypeError, r"shardmat.Matrix cannot be pickled or copied: .*scipy.sparse.save_npz"):
                take(m)
            with self.assertRaisesRegex(TypeError, r"shardmat.Product cannot be pickled .*make it anew"):
                take(m.product(2))

    def test_version(self):
        self.assertEqual(shardmat.__version__, shardmat.version())
        with self.assertRaisesRegex(AttributeError, "no attribute 'nothing'"):
            shardmat.nothing

    def test_an_exception_of_a_monitor_ends_the_solve(self):
        a = shardmat.Matrix.from_file("poisson7:n=8")

        def monitor(iterations, norms):
            raise KeyError("from the monitor")

        with self.assertRaisesRegex(KeyError, "from the monitor"):
            a.solve(np.ones(512), monitor=monitor)
        self.assertEqual(len(a @ np.ones(512)), 512)

    def test_a_signal_ends_a_solve(self):
        n = 100_000  # without preconditioner, cg takes as many iterations
        a = shardmat.Matrix.from_scipy(sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(n, n)))
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with self.assertRaises(KeyboardInterrupt):
            a.solve(np.random.default_rng(1).random(n), max_iterations=10**9)


class Processes(unittest.TestCase):
    def test_import_loads_no_library(self):
        code = ("import sys, shardmat\n"
                "assert 'shardmat._shardmat' not in sys.modules and 'numpy' not in sys.modules\n"
                "assert 'libshardmat' not in open('/proc/self/maps').read()\n"
                "shardmat.version()\n"
                "assert 'libshardmat' in open('/proc/self/maps').read()\n")
        subprocess.run([sys.executable, "-c", code], check=True)

    def test_child_after_fork(self):
        a = shardmat.Matrix.from_scipy(tridiagonal(10))
        child = os.fork()
        if child == 0:
            try:
                a @ np.ones(10)
            except shardmat.UsageError as error:
                os._exit(0 if "forked" in str(error) else 1)
            os._exit(2)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        np.testing.assert_allclose(a @ np.ones(10), tridiagonal(10) @ np.ones(10))

    def test_threads(self):
        a = tridiagonal(1000)
        m = shardmat.Matrix.from_scipy(a)
        wrong = []

        def work(seed):
            x = np.random.default_rng(seed).random(1000)
            for _ in range(50):
                if not np.allclose(m @ x, a @ x):
                    wrong.append(seed)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_solves_of_threads(self):
        a = tridiagonal(300)
        m = shardmat.Matrix.from_scipy(a)
        faulthandler.dump_traceback_later(600, exit=True)  # Python's lock may be what is waited for

        def work(seed):
            b = np.random.default_rng(seed).random(300)
            return np.linalg.norm(a @ m.solve(b, solver="gmres", monitor=lambda iterations, norms: None) - b)

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            residuals = list(pool.map(work, range(200)))
        faulthandler.cancel_dump_traceback_later()
        self.assertLess(max(residuals), 1e-6)

    def test_order_of_destruction(self):
        context = shardmat.Context(backend="host", threads=1)
        m = shardmat.Matrix.from_scipy(tridiagonal(10), context=context)
        product = m.product()
        context.close()
        m.close()
        self.assertEqual(product.multiply(np.ones(10)).shape, (10,))
        self.assertIn("closed", repr(context) + repr(m))
        with self.assertRaisesRegex(ValueError, "closed"):
            shardmat.Matrix.from_scipy(tridiagonal(10), context=context)


class Graphs(unittest.TestCase):
    def test_pagerank(self):
        a = sp.random(60, 60, 0.1, random_state=11).tocsr()
        scores = shardmat.pagerank(a, tolerance=1e-13)
        sums = np.asarray(a.sum(axis=1)).ravel()
        walk = sp.diags(np.where(sums > 0, 1 / np.where(sums > 0, sums, 1), 0)) @ a
        expected = np.full(60, 1 / 60)
        for _ in range(300):
            y = 0.85 * (walk.T @ expected)
            expected = y + (1 - y.sum()) / 60
        np.testing.assert_allclose(scores, expected, atol=1e-11)
        seeds = shardmat.pagerank(a, seeds=[3, 7])
        self.assertEqual(seeds.shape, (60, 2))
        self.assertEqual(list(seeds.argmax(axis=0)), [3, 7])
        with self.assertRaises(shardmat.NotConvergedError) as caught:
            shardmat.pagerank(a, max_iterations=1)
        self.assertEqual(caught.exception.x.shape, (60,))
        self.assertEqual(shardmat.pagerank("poisson7:n=4", unweighted=True).shape, (64,))
        np.testing.assert_array_equal(shardmat.pagerank(a.toarray(), tolerance=1e-13), scores)
        for wrong in ([[1, 0], [0, 1]], None, 3):
            with self.assertRaisesRegex(TypeError, "a matrix of SciPy or NumPy, or the name of a matrix file"):
                shardmat.pagerank(wrong)
        with self.assertRaisesRegex(ValueError, "two dimensions; this array has 1"):
            shardmat.pagerank(np.ones(3))

    def test_batches(self):
        matrices = [sp.random(3 + i % 5, 2 + i % 3, 0.5, random_state=i).tocsr() for i in range(40)]
        for dtype in (np.float32, np.float64):
            batch = shardmat.Batch.from_scipy(matrices, dtype=dtype)
            x = np.random.default_rng(12).random((batch.shape[1], 4)).astype(dtype)
            whole = sp.block_diag(matrices).tocsr()
            np.testing.assert_allclose(batch @ x, whole @ x, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(batch @ x[:, 0], whole @ x[:, 0], rtol=1e-5, atol=1e-6)
            parts = np.split(x, np.cumsum([m.shape[1] for m in matrices])[:-1])
            for y, matrix, part in zip(batch @ parts, matrices, parts):
                np.testing.assert_allclose(y, matrix @ part, rtol=1e-5, atol=1e-6)
        self.assertEqual(batch.info()["matrices"], 40)
        with self.assertRaisesRegex(ValueError, "X of matrix 0"):
            batch @ ([np.ones(99)] * 40)
        refused(ValueError, "real numbers", lambda: batch @ (1j * x))
        refused(ValueError, "real numbers", lambda: shardmat.Batch.from_scipy([sp.csr_matrix([[1j]])]))
        refused(ValueError, "too large for float32", lambda: shardmat.Batch.from_scipy([sp.csr_matrix([[1e300]])], dtype="float32"))
        batch.close()
        refused(ValueError, "closed", lambda: batch @ x)

    def test_what_is_refused(self):
        a = tridiagonal(6)
        m = shardmat.Matrix.from_scipy(a, updatable=True)
        refused(ValueError, "real numbers", lambda: m.solve(np.ones(6) * 1j, solver="gmres"))
        refused(ValueError, "real numbers", lambda: m.solve(np.ones(6), np.ones(6) * 1j, solver="gmres"))
        for name, wrong in (("rtol", -1), ("rtol", float("nan")), ("atol", -1), ("max_iterations", 0), ("restart", 0),
                            ("divergence_tolerance", 0), ("columns", 0)):
            refused(ValueError, name, lambda: m.solver("gmres", **{name: wrong}))
        for restart in (100001, 2**61, 2**63 - 1):
            for solver in ("gmres", "fgmres", None):
                refused(ValueError, "the restart must be from 1 to 100000", lambda: m.solver(solver, restart=restart))
        for name, large in (("restart", 2**64), ("max_iterations", 2**64), ("columns", 2**63), ("degree", 2**31),
                            ("node_block_size", 2**40)):
            refused(ValueError, f"{name} is {large}; it must be at most", lambda: m.solver("gmres", **{name: large}))
        with self.assertRaises(TypeError):
            m.solver("gmres", max_iterations="a")
        refused(ValueError, "whole numbers", lambda: m.zero_rows_columns([1.9]))
        refused(ValueError, "whole numbers", lambda: m.zero_rows_columns([True, False]))
        refused(ValueError, "whole numbers", lambda: shardmat.Matrix.from_triplets([0.7], [0], [1.0], (2, 2)))
        for seeds, words in (([-1], "no vertex -1"), ([6], "no vertex 6"), ([], "empty"), ([1.7], "whole numbers")):
            refused(ValueError, words, lambda: shardmat.pagerank(a, seeds=seeds))
        for change, words in ((lambda b: b.indptr.__setitem__(3, 500000), "indptr"),
                              (lambda b: setattr(b, "indices", b.indices[:2]), "indptr"),
                              (lambda b: b.indptr.__setitem__(2, 9), "indptr"),
                              (lambda b: b.indices.__setitem__(0, 6), "column numbers"),
                              (lambda b: b.indices.__setitem__(0, -1), "column numbers")):
            broken = a.copy()
            change(broken)
            refused(ValueError, words, lambda: shardmat.Matrix.from_scipy(broken))


class Stubs(unittest.TestCase):
    """__init__.pyi has the names and parameters that the package has."""

    def compare(self, node, thing, where):
        if isinstance(node, ast.FunctionDef):
            thing = thing.fget if isinstance(thing, property) else thing
            expected = [a.arg for a in node.args.posonlyargs + node.args.args + node.args.kwonlyargs if a.arg not in ("self", "cls")]
            expected += [a.arg for a in (node.args.vararg, node.args.kwarg) if a]
            found = [p.name for p in inspect.signature(thing).parameters.values() if p.name != "self"]
            self.assertEqual(sorted(expected), sorted(found), where)
        elif isinstance(node, ast.ClassDef):
            names = {child.name for child in node.body if isinstance(child, ast.FunctionDef)}
            public = {name for name in vars(thing) if not name.startswith("_") and callable(getattr(thing, name))}
            self.assertLessEqual(public, names | {"results", "x"}, where)
            for child in node.body:
                if isinstance(child, ast.FunctionDef):
                    of_class = inspect.getattr_static(thing, child.name)
                    found = getattr(thing, child.name) if isinstance(of_class, classmethod) else of_class
                    self.compare(child, found, f"{where}.{child.name}")

    def test_stubs(self):
        stub = pathlib.Path(shardmat.__file__).with_suffix(".pyi")
        nodes = {node.name: node for node in ast.parse(stub.read_text()).body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        self.assertEqual(sorted(nodes), sorted(shardmat.__all__))
        for name, node in nodes.items():
            self.compare(node, getattr(shardmat, name), name)


class DaemonThreads(unittest.TestCase):
    """Threads that are in calls of the library while the interpreter ends do not change how the process ends."""

    CODE = """
import threading, time
import numpy as np, scipy.sparse as sp, shardmat
a = (sp.random(200, 200, 0.05, random_state=1) + 4 * sp.eye(200)).tocsr()
A, x = shardmat.Matrix.from_scipy(a), np.ones(200)
running = threading.Semaphore(0)
def multiply():
    A @ x
def solve():
    A.solve(x, solver="gmres", monitor=lambda n, norms: False)
def make():
    shardmat.Matrix.from_scipy(a) @ x
def for_ever(call):
    call()
    running.release()
    while True:
        call()
for call in (WORK):
    threading.Thread(target=for_ever, args=(call,), daemon=True).start()
    running.acquire()
"""

    def test_exit_code(self):
        for work in ("multiply,", "solve,", "make,", "multiply, solve, make, solve"):
            for end, code in (("", 0), ("raise SystemExit(3)", 3), ("A.close()", 0)):
                for _ in range(3):
                    done = subprocess.run([sys.executable, "-c", self.CODE.replace("WORK", work) + end], capture_output=True, text=True,
                                          timeout=600)
                    self.assertEqual(done.returncode, code, f"{work} {end}: {done.stderr}")


def load_tests(loader, tests, pattern):
    """Also the examples of the README."""
    import doctest

    if os.environ.get("TEST_README"):
        tests.addTests(doctest.DocFileSuite(os.environ["TEST_README"], module_relative=False))
    return tests


if __name__ == "__main__":
    unittest.main()
