"""What the package refuses, and by which exception."""

import copy
import pickle
import signal
import unittest

import numpy as np
import scipy.sparse as sp

import shardmat
from checks import refused, tridiagonal


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
            shardmat.Matrix.from_rows(tridiagonal(3)).T.solve(np.ones(3))
        with self.assertRaisesRegex(shardmat.UsageError, "f16 has no transposed product"):
            shardmat.Matrix.from_scipy(tridiagonal(3), dtype=np.float16).T @ np.ones((3, 2), np.float16)
        self.assertTrue(issubclass(shardmat.ResourcesError, MemoryError))

    def test_cannot_be_pickled(self):
        m = shardmat.Matrix.from_scipy(sp.eye(3))
        for take in (pickle.dumps, copy.copy, copy.deepcopy):
            with self.assertRaisesRegex(TypeError, r"shardmat.Matrix cannot be pickled or copied: .*scipy.sparse.save_npz"):
                take(m)
            with self.assertRaisesRegex(TypeError, r"shardmat.Product cannot be pickled .*make it anew"):
                take(m.product(2))

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

    def test_what_is_refused(self):
        a = tridiagonal(6)
        m = shardmat.Matrix.from_scipy(a, updatable=True)
        refused(ValueError, "real numbers", lambda: m.solve(np.ones(6) * 1j, solver="gmres"))
        refused(ValueError, "real numbers", lambda: m.solve(np.ones(6), np.ones(6) * 1j, solver="gmres"))
        for name, wrong in (("rtol", -1), ("rtol", float("nan")), ("atol", -1), ("max_iterations", -1), ("restart", 0),
                            ("divergence_tolerance", 0), ("columns", 0)):
            refused(ValueError, name, lambda: m.solver("gmres", **{name: wrong}))
        for restart in (100001, 2**61, 2**63 - 1):
            for solver in ("gmres", "fgmres", None):
                refused(ValueError, "restart must be a whole number from 1 to 100000", lambda: m.solver(solver, restart=restart))
        for name, large in (("restart", 2**64), ("max_iterations", 2**64), ("columns", 2**63), ("degree", 2**31),
                            ("node_block_size", 2**40)):
            refused(ValueError, name, lambda: m.solver("gmres", **{name: large}))
        refused(ValueError, "max_iterations must be a whole number of 0 or more, not", lambda: m.solver("gmres", max_iterations="a"))
        refused(ValueError, "it must be one word", lambda: m.solver("gmres", variant="auto restart=7"))
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


if __name__ == "__main__":
    unittest.main()
