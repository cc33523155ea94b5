"""The client of the service with solvers, here and there: eigenvalues, and methods of SciPy on its matrices."""

import asyncio
import concurrent.futures
import unittest

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from service_client import HttpClient, ServiceClient

import shardmat
from support import BACKEND, LIMIT, write_binsparse
from test_serve_solve import poisson


class Pairs(ServiceClient):
    """K and M of a small pair, and its eigenvalues."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.k = (poisson(14) + sp.diags(np.linspace(-0.5, 0.1, 196))).tocsr()  # no multiple eigenvalues
        cls.p = (poisson(14) + sp.diags(np.linspace(0, 0.1, 196))).tocsr()
        cls.m = sp.diags([0.1, 1, 0.1], [-1, 0, 1], cls.k.shape).tocsr()
        for name in "kpm":
            write_binsparse(cls.library / f"{name}.h5", getattr(cls, name))

    def setUp(self):
        super().setUp()
        self.K, self.P, self.M = (self.service.load(name, f"{name}.h5", solvable=True) for name in "kpm")

    def check(self, answer, expected, k, m=None):
        w, v = answer
        m = sp.identity(len(v)) if m is None else m
        self.assertEqual((w.dtype, v.shape), (np.dtype("float64"), (len(v), len(expected))))
        np.testing.assert_allclose(w, expected, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(k @ v, (m @ v) * w, rtol=0, atol=1e-5)
        np.testing.assert_allclose(v.T @ (m @ v), np.identity(len(w)), rtol=0, atol=1e-6)


@unittest.skipIf(BACKEND == "cuda", "some methods run on the host only")
class Conformance:
    """What holds over every transport."""

    def test_eigenvalues_are_those_of_scipy(self):
        values, own = (scipy.linalg.eigh(a.toarray(), eigvals_only=True) for a in (self.k, self.p))
        large = lambda count: np.sort(values[np.argsort(-np.abs(values))[:count]])
        shift = values[40] + 0.2 * (values[41] - values[40])
        nearest = np.sort(values[np.argsort(np.abs(values - shift))[:3]])
        cases = (({}, large(6)), ({"k": 3, "which": "LM"}, large(3)), ({"k": 4, "which": "LA"}, values[-4:]), ({"k": 1}, large(1)),
                 ({"k": 4, "which": "SA"}, values[:4]), ({"k": 5, "which": "BE"}, np.r_[values[:2], values[-3:]]),
                 ({"k": 3, "sigma": shift}, nearest))
        for options, expected in cases:
            with self.subTest(options):
                self.check(self.K.eigsh(**options), expected, self.k)
                w = self.K.eigsh(**options, return_eigenvectors=False)
                np.testing.assert_allclose(w, spl.eigsh(self.k, **options)[0], rtol=1e-7)
                job = self.K.eigsh_async(**options)
                self.check(job.result(LIMIT), expected, self.k)
                np.testing.assert_allclose(self.K.eigsh_async(**options, return_eigenvectors=False).result(LIMIT), w, rtol=1e-12)
        self.check(self.P.eigsh(4, which="SM"), own[:4], self.p)
        self.assertEqual((self.service.jobs(), self.service.vectors()), ([], []))

    def test_a_mass_matrix_by_name(self):
        pairs = scipy.linalg.eigh(self.p.toarray(), self.m.toarray(), eigvals_only=True)
        shift = pairs[40] + 0.2 * (pairs[41] - pairs[40])
        nearest = np.sort(pairs[np.argsort(np.abs(pairs - shift))[:3]])
        for mass in (self.M, "m"):
            self.check(self.P.eigsh(6, mass, which="SM"), pairs[:6], self.p, self.m)
            self.check(self.P.eigsh(3, mass, shift), nearest, self.p, self.m)
            self.check(self.P.eigsh_async(3, mass, shift).result(LIMIT), nearest, self.p, self.m)
        w, v, info = self.P.eigsh(4, self.M, which="SA", method="shift_invert", return_info=True)
        self.check((w, v), pairs[:4], self.p, self.m)
        self.assertEqual((info["complete"], info["mass"], info["zero_modes"]), ("yes", "m", 0))

    def test_eigenvalues_of_f32(self):
        narrow = self.service.load("narrow", "k.h5", type="f32", solvable=True)
        w, v = narrow.eigsh(3, which="LA")
        self.assertEqual((w.dtype, v.dtype), (np.dtype("float64"), np.dtype("float32")))
        np.testing.assert_allclose(w, scipy.linalg.eigh(self.k.toarray(), eigvals_only=True)[-3:], rtol=1e-4)
        narrow.unload()

    def test_eigenvalues_that_are_not_found(self):
        far = {"k": 4, "which": "LA", "tolerance": 1e-300, "max_iterations": 60}
        for call in (lambda: self.K.eigsh(**far), self.K.eigsh_async(**far).result,
                     lambda: self.K.eigsh(4, which="LA", tol=1e-300, maxiter=60)):
            with self.assertRaises(shardmat.NotConvergedError) as caught:
                call()
            self.assertEqual((caught.exception.x.shape, len(caught.exception.results)), ((196, 4), 4))
            self.assertIn("value", caught.exception.results[0])
        with self.assertRaises(shardmat.NotConvergedError) as caught:
            self.K.eigsh(**{**far, "which": "BE", "k": 3})
        self.assertEqual((caught.exception.x.shape, len(caught.exception.results)), ((196, 3), 3))
        with self.assertRaises(shardmat.NotConvergedError) as caught:
            self.K.eigsh(**far, return_eigenvectors=False)
        self.assertIsNone(caught.exception.x)
        self.assertEqual(self.service.jobs(), [])

    def test_wrong_questions_about_eigenvalues(self):
        for call, kind, says in (
                (lambda: self.K.eigsh(v0=np.ones(196)), ValueError, "v0 cannot be given"), (lambda: self.K.eigsh(0), ValueError, "it must be 1 to 196"),
                (lambda: self.K.eigsh(197), ValueError, "it must be 1 to 196"), (lambda: self.K.eigsh(2.5), TypeError, "integer"),
                (lambda: self.K.eigsh(which="LR"), ValueError, "which is 'LR'"),
                (lambda: self.K.eigsh(tol=1e-3, tolerance=1e-4), ValueError, "two words for one thing"),
                (lambda: self.K.eigsh(sigma=1.0, which="SM"), ValueError, "nearest to sigma"),
                (lambda: self.K.eigsh(M=self.m, which="SM"), TypeError, "matrix_from"), (lambda: self.K.eigsh(M=self.M), ValueError, "which='SM'"),
                (lambda: self.K.eigsh(M=self.G, which="SM"), ValueError, r"M has shape \(3600, 3600\)"),
                (lambda: self.K.eigsh(M="none", which="SM"), shardmat.service.NotFoundError, "there is no matrix none"),
                (lambda: self.K.eigsh(M="bar", which="SM"), shardmat.service.RefusedError, "solvable"),
                (lambda: self.A.eigsh(), shardmat.service.RefusedError, "solvable"), (lambda: self.G.eigsh(200), shardmat.service.RefusedError, "count"),
                (lambda: self.K.eigsh(walt=3), shardmat.service.RefusedError, "walt"),
                (lambda: self.K.eigsh(guard=np.ones(3)), TypeError, "words or numbers")):
            with self.assertRaisesRegex(kind, says):
                call()
        narrow = self.service.load("narrow", "k.h5", type="f32", solvable=True)
        with self.assertRaisesRegex(shardmat.service.RefusedError, "f64"):
            narrow.eigsh(which="SM")
        narrow.unload()
        self.assertEqual(self.service.jobs(), [])

    def endless(self, **options):
        """A job that does not end by itself."""
        return self.G.eigsh_async(60, which="LA", basis=2000, tolerance=1e-300, max_iterations=10**9, **options)

    def test_eigenvalues_as_a_future(self):
        job = self.endless()
        self.assertFalse(job.done())
        with self.assertRaises(TimeoutError):
            job.result(timeout=0.05)
        self.server.wait_for("work", lambda: job.state == "running")
        self.assertTrue(job.cancel())
        with self.assertRaises(concurrent.futures.CancelledError):
            job.result()
        with self.assertRaises(TimeoutError):
            self.G.eigsh(60, which="LA", basis=2000, tolerance=1e-300, max_iterations=10**9, timeout=0.3)
        self.server.wait_for("the end of the job whose client left", lambda: all(one["state"] == "cancelled" for one in self.service.jobs()))

        async def all_of_them():
            return await asyncio.gather(*(self.K.eigsh_async(2, which=which) for which in ("LA", "SA")))

        values = scipy.linalg.eigh(self.k.toarray(), eigvals_only=True)
        for answer, expected in zip(asyncio.run(all_of_them()), (values[-2:], values[:2])):
            self.check(answer, expected, self.k)
        with self.K.eigsh_async(3, which="BE", keep=True) as job:
            w, v = job.result(LIMIT)
            self.assertGreater(len(job.history), 0)
            self.assertEqual((job.x.shape, [pair["value"] for pair in job.results][-2:]), ((196, 4), w[-2:].tolist()))
            every, _ = self.service.job(job.id).result()
            self.assertEqual(every[[0, 2, 3]].tolist(), w.tolist())


class OverUnixSocket(Conformance, Pairs):
    pass


class OverHttp(Conformance, HttpClient, Pairs):
    pass


if __name__ == "__main__":
    unittest.main()
