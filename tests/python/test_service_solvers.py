"""The client of the service with solvers, here and there: eigenvalues, and methods of SciPy on its matrices."""

import asyncio
import concurrent.futures
import os
import socket
import unittest
import unittest.mock

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from service_client import HttpClient, ServiceClient

import shardmat
from service import at_once
from shardmat.service.connection import Connection
from support import BACKEND, LIMIT, PROGRAM, run, write_binsparse
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


class Traffic:
    """Requests and bytes of this program's connections, while it is entered."""

    def __enter__(self):
        self.requests = self.sent = self.received = 0
        send, receive = Connection._send, Connection._receive

        def counting_send(connection, *arguments):
            self.requests += 1
            plain = connection._socket
            connection._socket = Socket(plain, self)
            try:
                send(connection, *arguments)
            finally:
                connection._socket = plain

        def counting_receive(connection, *arguments):
            plain = connection._socket
            connection._socket = Socket(plain, self)
            try:
                return receive(connection, *arguments)
            finally:
                connection._socket = plain

        self.patches = [unittest.mock.patch.object(Connection, "_send", counting_send),
                        unittest.mock.patch.object(Connection, "_receive", counting_receive)]
        for patch in self.patches:
            patch.start()
        return self

    def __exit__(self, *_):
        for patch in self.patches:
            patch.stop()


class Socket:
    """A socket that counts."""

    def __init__(self, plain, traffic):
        self.plain, self.traffic = plain, traffic

    def __getattr__(self, name):
        return getattr(self.plain, name)

    def sendall(self, data):
        self.traffic.sent += len(data)
        self.plain.sendall(data)

    def recv(self, most):
        data = self.plain.recv(most)
        self.traffic.received += len(data)
        return data

    def recv_into(self, room):
        count = self.plain.recv_into(room)
        self.traffic.received += count
        return count


def counted(calls, multiply=shardmat.service.Matrix.multiply):
    def count(*arguments, **options):
        calls.append(None)
        return multiply(*arguments, **options)

    return count


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
                np.testing.assert_allclose(self.K.eigsh_async(**options, return_eigenvectors=False).result(LIMIT),
                                           spl.eigsh(self.k, **options)[0], rtol=1e-7)
        for options, expected in cases[:2]:
            self.check(self.K.eigsh_async(**options).result(LIMIT), expected, self.k)
            np.testing.assert_allclose(self.K.eigsh(**options, return_eigenvectors=False), expected, rtol=1e-7)
        self.check(self.P.eigsh(4, which="SM"), own[:4], self.p)
        self.assertEqual((self.service.jobs(), self.service.vectors()), ([], []))

    def test_a_mass_matrix_by_name(self):
        pairs = scipy.linalg.eigh(self.p.toarray(), self.m.toarray(), eigvals_only=True)
        shift = pairs[40] + 0.2 * (pairs[41] - pairs[40])
        nearest = np.sort(pairs[np.argsort(np.abs(pairs - shift))[:3]])
        for mass in (self.M, "m"):
            self.check(self.P.eigsh(6, mass, which="SM"), pairs[:6], self.p, self.m)
        self.check(self.P.eigsh(3, self.M, shift), nearest, self.p, self.m)
        self.check(self.P.eigsh_async(3, "m", shift).result(LIMIT), nearest, self.p, self.m)
        w, v, info = self.P.eigsh(4, self.M, which="SA", method="shift_invert", return_info=True)
        self.check((w, v), pairs[:4], self.p, self.m)
        self.assertEqual((info["complete"], info["mass"], info["zero_modes"]), ("yes", "m", 0))

    def test_eigenvalues_begin_with_given_vectors(self):
        expected = scipy.linalg.eigh(self.p.toarray(), self.m.toarray(), eigvals_only=True)[:4]
        w, v, cold = self.P.eigsh(4, self.M, which="SM", return_info=True)
        vector, job = self.P.vector(v), self.P.eigsh_async(4, self.M, which="SM", keep=True)
        job.result(LIMIT)
        for v0 in (v, vector, job):
            *pairs, warm = self.P.eigsh(4, self.M, which="SM", v0=v0, return_info=True)
            self.check(pairs, expected, self.p, self.m)
            self.assertLess(warm["iteration"], cold["iteration"])
        self.check(self.P.eigsh_async(4, self.M, which="SM", v0=v).result(LIMIT), expected, self.p, self.m)
        self.check(self.P.eigsh(4, self.M, which="SM", v0=np.ones(self.p.shape[0])), expected, self.p, self.m)
        self.check(self.P.eigsh(4, self.M, 0.5 * expected[0], v0=v[:, 0]), expected, self.p, self.m)
        job.delete(), vector.delete()
        self.assertEqual((self.service.jobs(), self.service.vectors()), ([], []))
        with self.assertRaisesRegex(ValueError, "v0"):
            self.P.eigsh(4, self.M, which="SM", v0=np.ones(3))

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


    def test_methods_of_scipy_ask_once_for_each_product(self):
        b, shared = self.columns(n=3600), self.service.address.path is not None
        self.assertEqual(self.G.aslinearoperator().vectors, "memory" if shared else "bodies")
        with self.assertRaisesRegex(ValueError, "vectors is 'ranks'"):
            self.G.aslinearoperator("ranks")
        if not shared:
            with self.assertRaisesRegex(ValueError, "Unix socket"):
                self.G.aslinearoperator("memory")
        for method, options in ((spl.cg, {"atol": 1e-10}), (spl.gmres, {"atol": 1e-10, "maxiter": 5})):
            products = []
            with unittest.mock.patch.object(shardmat.service.Matrix, "multiply", autospec=True, side_effect=counted(products)):
                operator = self.G.aslinearoperator()
                with Traffic() as traffic:
                    x, _ = method(operator, b, **options)
            self.assertGreater(len(products), 50)
            self.assertEqual(traffic.requests, len(products))
            if shared:
                self.assertLess(max(traffic.sent, traffic.received), 2000 * len(products))
            for vectors in ("bodies", "memory" if shared else "auto"):
                again, _ = method(self.G.aslinearoperator(vectors), b, **options)
                self.assertEqual(again.tobytes(), x.tobytes())

    def test_operators_have_the_bits_of_products(self):
        wide = self.service.load("wide", "wide.h5")
        operator, other = wide.aslinearoperator(), wide.T.aslinearoperator()
        self.assertEqual(operator.vectors, other.vectors)
        for k in (None, 1, 3, 40):
            x, y = self.columns(k), self.columns(k, n=400)
            kept = operator @ x, operator.T @ y
            for found, expected in zip((*kept, other.T @ x, other @ y), 2 * (wide @ x, wide.T @ y)):
                self.assertEqual((found.shape, found.tobytes()), (expected.shape, expected.tobytes()))
            operator @ (2 * x)
            self.assertEqual(kept[0].tobytes(), (wide @ x).tobytes())  # it is the caller's
        with self.assertRaisesRegex(ValueError, "dimension mismatch"):
            operator @ y
        wrong = []

        def client(number):
            x = self.columns(seed=number)
            expected = (wide @ x).tobytes()
            if any((operator @ x).tobytes() != expected for _ in range(20)):
                wrong.append(number)

        at_once(4, client)
        self.assertEqual(wrong, [])
        child = os.fork()
        if child == 0:
            os._exit(0 if all((operator @ x).tobytes() == kept[0].tobytes() for _ in range(20)) else 1)
        good = all((operator @ x).tobytes() == kept[0].tobytes() for _ in range(20))
        self.assertEqual((os.waitpid(child, 0)[1], good), (0, True))


    def test_a_place_that_cannot_be_written_is_refused_before_the_work(self):
        b, kept = self.columns(n=3600), self.G.vector(self.columns(n=3600))
        np.save(self.path("x.npy"), b)
        for out in (np.load(self.path("x.npy"), mmap_mode="r"), np.broadcast_to(np.float64(1), 3600)):
            with Traffic() as traffic:
                for call in (self.G.solve, self.G.pagerank, self.G.multiply, lambda x, out: kept.get(out)):
                    with self.assertRaisesRegex(ValueError, "out is read-only"):
                        call(b, out=out)
            self.assertEqual(traffic.requests, 0)

    def test_calls_are_awaited(self):
        x = [self.columns(seed=seed) for seed in range(40)]
        expected = [(self.A @ one).tobytes() for one in x]

        async def work():
            A = await self.service.load_async("bar", "bar.h5", updatable=True)
            found = await asyncio.gather(*(A.multiply_async(one) for one in x))
            self.assertEqual([y.tobytes() for y in found], expected)
            y = np.empty(975)
            self.assertIs(await A.T.multiply_async(x[0], out=y, alpha=2), y)
            np.testing.assert_array_equal(y, self.A.T.multiply(x[0], alpha=2))
            v = await A.multiply_async(A.vector(x[1]))
            self.assertEqual((await self.service.call(v.get)).tobytes(), expected[1])
            batch = await self.service.multiply_batch_async([self.k, self.m], [x[0][:196], x[1][:196]])
            np.testing.assert_allclose(batch[1], self.m @ x[1][:196])
            for call, kind in ((A.multiply_async(x[0][:3]), ValueError), (self.service.load_async("bad", "../bar.h5"), shardmat.InputError)):
                with self.assertRaises(kind):
                    await call

        asyncio.run(work())
        slow = self.service.load("slow", "slow.h5", solvable=True)
        call = self.service.call(slow.solve, self.columns(n=3600), solver="gmres", preconditioner="none", restart=1, rtol=1e-300, max_iterations=10**9)
        self.server.wait_for("iterations", lambda: [one["iteration"] for one in self.service.jobs() if one["state"] == "running"])
        self.assertTrue(call.cancel())
        self.server.wait_for("the end of the job whose client left", lambda: [one["state"] for one in self.service.jobs()] == ["cancelled"])
        call = self.A.multiply_async(x[0])
        self.assertEqual(call.result(LIMIT).tobytes(), expected[0])
        self.assertFalse(call.cancel())
        child = os.fork()
        if child == 0:
            os._exit(0 if self.A.multiply_async(x[0]).result(LIMIT).tobytes() == expected[0] else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)


class OverUnixSocket(Conformance, Pairs):
    def test_an_operator_whose_connection_ended(self):
        x = self.columns()
        operator = self.A.aslinearoperator()
        y = (operator @ x).tobytes()
        for end in (lambda connection: connection.close(), lambda connection: connection._socket.shutdown(socket.SHUT_RDWR)):
            for memory in self.service._all_memories():
                if memory.is_shared():
                    end(memory._connection)
            del memory
            self.assertEqual((operator @ x).tobytes(), y)
        wide = np.column_stack([x, 2 * x, 3 * x])
        with unittest.mock.patch.object(type(self.service), "memory", side_effect=shardmat.service.TooLargeError("the arena is full")):
            self.assertEqual((operator @ wide).tobytes(), (self.A @ wide).tobytes())  # one column after another
            self.assertEqual(self.A.aslinearoperator().vectors, "bodies")
            with self.assertRaises(shardmat.service.TooLargeError):
                self.A.aslinearoperator("memory")

    def test_memory_in_a_child(self):
        """Its requests go over connections of its own."""
        with self.service.memory(1 << 20) as memory:
            x, y = memory.empty(975), np.empty(975)
            x[...] = self.columns()
            expected = (self.A @ x).tobytes()
            child = os.fork()
            if child == 0:
                os._exit(0 if all(self.A.multiply(x, out=y).tobytes() == expected for _ in range(20)) else 1)
            good = all(self.A.multiply(x, out=y).tobytes() == expected for _ in range(20))
            self.assertEqual((os.waitpid(child, 0)[1], good), (0, True))


class OverHttp(Conformance, HttpClient, Pairs):
    pass


class Coordinates(ServiceClient):
    @classmethod
    def options(cls):
        return ("--upload-limit", "10MB")

    def test_arrays_of_coordinates_are_sent_once(self):
        from test_multigrid import BEAM, grid_points

        result = run([PROGRAM, "convert", BEAM, self.library / "beam.npz"], self.folder)
        self.assertEqual(result.code, 0, result)
        a, points, b = sp.load_npz(self.library / "beam.npz").tocsr(), grid_points(), np.random.default_rng(4).standard_normal(3000)
        plain = self.service.matrix_from(a, "plain", solvable=True)
        ways = (self.service.matrix_from(a, "arrays", solvable=True, coordinates=points),
                self.service.load("file", "beam.npz", solvable=True, coordinates=points.tolist()))
        (name,) = {way.info()["coordinates"] for way in ways}
        self.assertEqual(self.service.load("named", "beam.npz", solvable=True, coordinates=name).info()["coordinates"], name)
        iterations = []
        for matrix in (plain, *ways):
            job = matrix.solve_async(b, solver="cg", preconditioner="multigrid", rtol=1e-9)
            np.testing.assert_allclose(a @ job.result(LIMIT), b, rtol=0, atol=1e-6)
            iterations.append(job.iteration)
        self.assertLess(iterations[1], iterations[0])
        self.assertEqual(iterations[1], iterations[2])
        with self.assertRaisesRegex(ValueError, "shape"):
            self.service.load("flat", "beam.npz", solvable=True, coordinates=points.ravel())
        with self.assertRaisesRegex(shardmat.service.RefusedError, "solvable"):
            self.service.load("products", "beam.npz", coordinates=points)


if __name__ == "__main__":
    unittest.main()
