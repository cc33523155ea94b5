"""The client of the service: the same tests over a Unix socket, HTTP and TLS."""

import asyncio
import concurrent.futures
import gc
import os
import signal
import subprocess
import sys
import threading
import unittest

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from service_client import CG, HttpClient, ServiceClient

import shardmat
from service import Service, at_once
from support import LIMIT
from test_serve_door import LISTEN, has_tls, make_certificate


class Protocol:
    """An array of another library in host memory: it speaks DLPack and nothing else."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return (1, 0)


class Conformance:
    """What holds over every transport."""

    def test_what_a_matrix_is(self):
        self.assertEqual((self.A.shape, self.A.ndim, self.A.nnz, self.A.dtype), ((975, 975), 2, 33525, np.dtype("float64")))
        self.assertIn("bar: 975×975, 33525 entries of float64", repr(self.A))
        self.assertEqual(self.A.info()["state"], "ready")
        self.assertLessEqual({"bar", "grid"}, {one["name"] for one in self.service.matrices()})
        self.assertTrue(self.service.ready())
        status = self.service.status()
        self.assertEqual((status["state"], len(status["ranks"])), ("ready", 2))
        self.assertIn("shardmat_requests_total", self.service.metrics())

    def test_products_have_the_bits_of_the_server(self):
        for k in (None, 1, 3, 32, 40):
            x = self.columns(k)
            expected = self.expected(x)
            for given in (x, np.asfortranarray(x), np.repeat(x, 2, axis=0)[::2], x.astype(">f8")):
                y = self.A @ given
                self.assertEqual((y.shape, y.dtype), (x.shape, np.dtype("float64")))
                self.assertEqual(y.tobytes(order="F"), expected)
        x = self.columns()
        self.assertEqual((self.A @ Protocol(x)).tobytes(), self.expected(x))
        self.assertEqual((self.A @ list(x)).tobytes(), self.expected(x))
        whole = np.arange(975)
        self.assertEqual((self.A @ whole).tobytes(), self.expected(whole.astype(float)))

    def test_other_types_and_shapes(self):
        narrow = self.service.load("narrow", "bar.h5", type="f32")
        x = self.columns(2, dtype="float32")
        y = narrow @ x.astype(float)
        self.assertEqual((y.dtype, y.tobytes(order="F")), (np.dtype("float32"), self.expected(x, "narrow")))
        narrow.unload()
        wide = self.service.load("wide", "wide.h5")
        self.assertEqual(wide.shape, (400, 975))
        x = self.columns(2)
        self.assertEqual((wide @ x).tobytes(order="F"), self.expected(x, "wide"))
        on_ranks = wide @ wide.vector(x)
        self.assertEqual((on_ranks.shape, on_ranks.get().tobytes(order="F")), ((400, 2), self.expected(x, "wide")))
        self.service.unload("wide")
        with self.assertRaises(shardmat.service.NotFoundError):
            self.service.matrix("wide")

    def test_the_transpose(self):
        wide = self.service.load("wide", "wide.h5")
        self.addCleanup(self.service.unload, "wide")
        self.assertEqual((wide.T.shape, wide.T.dtype), ((975, 400), wide.dtype))
        self.assertIs(wide.T.T, wide)
        for k in (None, 3, 40):
            x = self.columns(k, n=400)
            y = wide.T @ x
            np.testing.assert_allclose(y, self.wide.T @ x, rtol=0, atol=1e-9)
            self.assertEqual(y.tobytes(order="F"), self.expected(x, "wide", "?transpose=1"))
            np.testing.assert_array_equal(wide.T.multiply(x, np.ones_like(y), alpha=2, beta=-1), 2 * y - 1)
        self.assertEqual((wide.T @ wide.vector(x, rows=True)).get().tobytes(order="F"), y.tobytes(order="F"))
        with self.assertRaisesRegex(ValueError, "400"):
            wide.T @ self.columns()
        b = self.columns(n=400)
        for operator in (wide, wide.aslinearoperator(), wide.T.aslinearoperator().T, wide.T.T):
            found = spl.lsqr(operator, b, atol=1e-12, btol=1e-12, iter_lim=2000)[0]
            np.testing.assert_allclose(found, spl.lsqr(self.wide, b, atol=1e-12, btol=1e-12, iter_lim=2000)[0], rtol=0, atol=1e-4)
        np.testing.assert_allclose(spl.aslinearoperator(wide.T).matvec(b), self.wide.T @ b, rtol=0, atol=1e-9)
        np.testing.assert_allclose(spl.aslinearoperator(wide.T).rmatvec(self.columns()), self.wide @ self.columns(), rtol=0, atol=1e-9)

    def test_out_alpha_and_beta(self):
        for k in (None, 3, 40):
            x, before = self.columns(k), self.columns(k, 2)
            plain = self.A @ x
            for out in (np.array(before, order="F"), np.array(before, order="C"), before.astype("float32")):
                kept = out.astype(float)
                result = self.A.multiply(x, out=out, alpha=-2.0, beta=0.5)
                self.assertIs(result, out)
                np.testing.assert_allclose(out, -2 * plain + 0.5 * kept, rtol=1e-5 if out.dtype == np.float32 else 1e-13, atol=1e-4 if out.dtype == np.float32 else 1e-11)
            self.assertEqual(self.A.multiply(x, alpha=-0.25).tobytes(), (-0.25 * plain).tobytes())
        with self.assertRaisesRegex(ValueError, "beta needs the out"):
            self.A.multiply(x, beta=1.0)

    def test_wrong_arguments_are_not_sent(self):
        for x, says in ((np.ones(3), r"\(3,\)"), (np.ones((975, 2, 2)), "shape"), (np.ones(975) * 1j, "real numbers"),
                        (np.array(["a"] * 975), "real numbers"), (np.ones((975, 0)), "no columns")):
            with self.assertRaisesRegex(ValueError, says):
                self.A @ x
        with self.assertRaisesRegex(ValueError, "out must be"):
            self.A.multiply(np.ones(975), out=np.ones(974))
        with self.assertRaisesRegex(ValueError, "timeout"):
            self.A.multiply(np.ones(975), timeout=0)
        on_gpu = Protocol(np.ones(975))
        on_gpu.__class__ = type("OnGpu", (Protocol,), {"__dlpack_device__": lambda self: (2, 0)})
        with self.assertRaisesRegex(TypeError, "lies on a device"):
            self.A @ on_gpu

    def test_errors_carry_what_the_server_said(self):
        with self.assertRaises(shardmat.service.NotFoundError) as caught:
            self.service.matrix("none")
        error = caught.exception
        self.assertEqual((error.status, error.code, error.details["code"]), (404, "no_matrix", "no_matrix"))
        self.assertIn(error.request_id, str(error))
        self.assertIn("there is no matrix none", str(error))
        self.assertIsInstance(error, (shardmat.Error, LookupError))
        with self.assertRaisesRegex(shardmat.InputError, "leaves the library"):
            self.service.load("bad", "../bar.h5")
        with self.assertRaisesRegex(shardmat.InputError, "bad is failed: .*leaves the library"):
            self.service.matrix("bad")
        with self.assertRaises(shardmat.service.RefusedError) as caught:
            self.A.multiply(self.columns(), generation=10**9)
        self.assertEqual(caught.exception.status, 412)
        with self.assertRaisesRegex(shardmat.service.RefusedError, "priority"):
            self.A.multiply(self.columns(), priority="now")
        with self.assertRaises(shardmat.service.RefusedError) as caught:
            self.A.solve(self.columns())
        self.assertEqual(caught.exception.code, "not_solvable")

    def test_a_matrix_that_was_replaced_is_noticed(self):
        old = self.service.load("other", "bar.h5")
        self.service.load("other", "bar.h5", type="f32")
        with self.assertRaises(shardmat.service.RefusedError) as caught:
            old @ self.columns()
        self.assertEqual(caught.exception.code, "wrong_type")
        self.service.unload("other")

    def test_scipy(self):
        b = self.columns(n=3600)
        for operator in (self.G, self.G.aslinearoperator()):
            x, info = spl.cg(operator, b, atol=1e-10)
            self.assertEqual(info, 0)
            np.testing.assert_allclose(self.grid @ x, b, atol=1e-4)
        self.assertEqual((self.G.aslinearoperator() @ np.column_stack([b, b])).shape, (3600, 2))
        self.assertEqual(spl.aslinearoperator(self.G).matvec(b[:, None]).shape, (3600, 1))

    def links(self):
        return self.service.load("links", "links.h5", solvable=True)

    def test_scores_have_the_bits_of_the_server(self):
        b = abs(self.columns(3, n=3600))
        self.links()
        for given in (None, b[:, 0], b):
            body = b"" if given is None else np.asfortranarray(given).tobytes(order="F")
            columns = 1 if given is None or given.ndim == 1 else 3
            answer = self.server.ask("POST", f"/v1/matrices/links/pagerank?damping=0.5&wait=60&k={columns}", body)
            self.assertEqual(answer.status, 200, answer)
            self.assertEqual(self.links().pagerank(given, damping=0.5).tobytes(order="F"), answer.body)
            self.assertEqual(self.links().pagerank_async(given, damping=0.5).result(LIMIT).tobytes(order="F"), answer.body)
        self.assertEqual(self.links().pagerank(self.links().vector(b), damping=0.5).tobytes(order="F"), answer.body)
        np.testing.assert_allclose(self.links().pagerank().sum(), 1, rtol=1e-12)
        with self.assertRaises(shardmat.NotConvergedError) as caught:
            self.links().pagerank(max_iterations=2)
        self.assertEqual((caught.exception.x.shape, caught.exception.results[0]["iterations"]), ((3600,), 2))
        with self.assertRaisesRegex(ValueError, "restarts"):
            self.links().pagerank(b[1:])

    def test_solves_have_the_bits_of_the_server(self):
        for k in (None, 3):
            b = self.columns(k, n=3600)
            expected = self.solve(self.server, np.asfortranarray(b).tobytes(order="F"),
                                  f"method=cg&preconditioner=jacobi&wait=60&k={k or 1}", status=200).body
            self.assertEqual(self.G.solve(b, **CG).tobytes(order="F"), expected)
            self.assertEqual(self.G.solve(self.G.vector(b), **CG).tobytes(order="F"), expected)
            job = self.G.solve_async(b, **CG)
            self.assertEqual(job.result(LIMIT).tobytes(order="F"), expected)
            self.assertEqual(job.result().shape, b.shape)
        self.assertEqual(self.service.jobs(), [])

    def test_first_guesses(self):
        b = self.columns(n=3600)
        with self.G.solve_async(b, keep=True, rtol=1e-9, **CG) as job:
            x = job.result(LIMIT)
            self.assertEqual(job.x.get().tobytes(), x.tobytes())
            for guess in (x, job, job.x):
                again = self.G.solve_async(b, guess, rtol=1e-8, **CG)
                self.assertEqual(again.result(LIMIT).tobytes(), x.tobytes())
                self.assertEqual(again.results[0]["iterations"], 0)
            found = self.service.job(job.id)
            self.assertEqual((found.state, found.result().tobytes()), ("done", x.tobytes()))
        self.assertEqual((self.service.jobs(), self.service.vectors()), ([], []))
        with self.assertRaises(shardmat.service.NotFoundError):
            self.service.job(job.id)

    def test_a_solve_that_does_not_converge(self):
        b = self.columns(2, n=3600)
        calls = [lambda: self.G.solve(b, max_iterations=np.int64(3), **CG), self.G.solve_async(b, max_iterations=3, **CG).result]
        for call in calls:
            with self.assertRaises(shardmat.NotConvergedError) as caught:
                call()
            self.assertEqual((caught.exception.x.shape, len(caught.exception.results)), (b.shape, 2))
            self.assertEqual(caught.exception.results[0]["iterations"], 3)
            self.assertLess(np.linalg.norm(b - self.grid @ caught.exception.x), np.linalg.norm(b) * 100)
        self.assertEqual(self.service.jobs(), [])
        with self.assertRaisesRegex(shardmat.service.RefusedError, "no parameter"):
            self.G.solve(b, walt=3)
        with self.assertRaisesRegex(TypeError, "words or numbers"):
            self.G.solve(b, coordinates=np.ones((3, 3)))

    def endless_job(self, **options):
        return self.service.load("slow", "slow.h5", solvable=True).solve_async(
            self.columns(n=3600), solver="gmres", preconditioner="none", restart=1, rtol=1e-300, max_iterations=10**9, **options)

    def test_a_job_as_a_future(self):
        job = self.endless_job()
        self.assertFalse(job.done())
        with self.assertRaises(TimeoutError):
            job.result(timeout=0.05)
        with self.assertRaises(shardmat.service.TimedOut):
            job.exception(timeout=0.05)
        self.server.wait_for("iterations", lambda: job.iteration > 1)
        self.assertTrue(job.running())
        history = job.history
        self.assertGreater(len(history), 1)
        self.assertGreater(job.residual, 0)
        called = threading.Event()
        job.add_done_callback(lambda one: called.set() if one is job else None)
        self.assertTrue(job.cancel())
        self.assertTrue(job.cancelled() and job.done() and not job.running())
        self.assertTrue(called.wait(LIMIT))
        for call in (job.result, job.exception):
            with self.assertRaises(concurrent.futures.CancelledError):
                call()
        self.assertTrue(job.cancel())  # as it was
        ended = self.G.solve_async(self.columns(n=3600), **CG)
        self.assertIsNone(ended.exception(LIMIT))
        self.assertFalse(ended.cancel())
        self.assertEqual(self.service.jobs(), [])

    def test_a_job_is_awaited(self):
        b = [self.columns(n=3600, seed=seed) for seed in range(4)]

        async def all_of_them(**how):
            return await asyncio.gather(*(self.G.solve_async(one, **how, **CG) for one in b))

        for one, x in zip(b, asyncio.run(all_of_them(alone=1))):
            self.assertEqual(x.tobytes(), self.G.solve(one, alone=1, **CG).tobytes())
        for one, x in zip(b, asyncio.run(all_of_them())):  # these may be merged
            self.assertLess(np.linalg.norm(one - self.grid @ x), 1e-6 * np.linalg.norm(one))

        async def cancelled(job):
            task = asyncio.ensure_future(job)
            while not await asyncio.get_running_loop().run_in_executor(None, job.running):
                pass
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        job = self.endless_job()

        async def run():
            await cancelled(job)

        asyncio.run(run())
        self.assertEqual(job.state, "cancelled")

    def test_limits_of_a_solve(self):
        slow = self.service.load("slow", "slow.h5", solvable=True)
        endless = {"solver": "gmres", "preconditioner": "none", "restart": 1, "rtol": 1e-300, "max_iterations": 10**9}
        with self.assertRaisesRegex(shardmat.NotConvergedError, "limit") as caught:
            slow.solve(self.columns(n=3600), limit=0.2, **endless)
        self.assertEqual(caught.exception.x.shape, (3600,))
        with self.assertRaises(shardmat.service.TimedOut):
            slow.solve(self.columns(n=3600), timeout=0.3, **endless)
        self.server.wait_for("the end of the job whose client left", lambda: all(
            job["state"] == "cancelled" for job in self.service.jobs()))

    def test_limits_hold_while_the_service_is_stopped(self):
        slow = self.service.load("slow", "slow.h5", solvable=True)
        client = shardmat.connect(self.server.state)  # without a limit of its own
        slow, A = client.matrix("slow"), client.matrix("bar")
        b = self.columns(n=3600)
        job = slow.solve_async(b, solver="gmres", preconditioner="none", restart=1, rtol=1e-300, max_iterations=10**9)
        dropped = A.vector(2)
        self.server.process.send_signal(signal.SIGSTOP)
        try:
            calls = (lambda: job.result(timeout=0.3), lambda: job.exception(timeout=0.3), lambda: job.cancel(timeout=0.3), lambda: job.info(timeout=0.3),
                     lambda: slow.solve(b, b, timeout=0.3), lambda: slow.solve_async(b, b, timeout=0.3), lambda: client.load("bar", "bar.h5", timeout=0.3),
                     lambda: A.multiply(A.vector(2, timeout=0.3), timeout=0.3), lambda: A.multiply(self.columns(40), timeout=0.3),
                     lambda: dropped.get(timeout=0.3), lambda: A.multiply(dropped, timeout=0.3), lambda: client.ready(timeout=0.3))
            for call in calls:
                with self.assertRaises(TimeoutError):
                    call()
            late = []

            def wait(number):  # one of them holds the job while it asks
                try:
                    job.result(timeout=0.5)
                except TimeoutError:
                    late.append(number)

            at_once(3, wait)
            self.assertEqual(sorted(late), [0, 1, 2])
            del dropped
            client.close()  # cannot delete the vector now
        finally:
            self.server.process.send_signal(signal.SIGCONT)
        self.service.job(job.id).delete()

    def test_vectors(self):
        for k in (None, 3):
            x, y = self.columns(k), self.columns(k, 2)
            on_ranks = self.A.vector(x)
            self.assertEqual((on_ranks.shape, on_ranks.dtype), (x.shape, np.dtype("float64")))
            self.assertEqual(on_ranks.get().tobytes(), np.asfortranarray(x).tobytes())
            self.assertEqual(np.asarray(on_ranks).tolist(), x.tolist())
            product = self.A @ on_ranks
            self.assertIsInstance(product, shardmat.service.Vector)
            self.assertEqual(product.get().tobytes(order="F"), self.expected(x))
            into = np.empty(x.shape)
            self.assertIs(product.get(into), into)
            self.assertEqual(into.tobytes(order="F"), self.expected(x))
            self.assertIs(self.A.multiply(on_ranks, out=into, alpha=2), into)
            np.testing.assert_array_equal(into, 2 * product.get())
            product.put(y)
            self.A.multiply(x, out=product, beta=-1.0)
            np.testing.assert_allclose(product.get(), self.matrix @ x - y, rtol=0, atol=1e-9)
            with self.assertRaisesRegex(ValueError, "shape"):
                product.put(np.ones((975, 7)))
        with self.service.make_vector(10, 2, dtype="float32", shared=True) as free:
            self.assertEqual((free.shape, free.dtype, len(free)), ((10, 2), np.dtype("float32"), 10))
            self.assertEqual(self.service.vector(free.id).get().tolist(), [[0, 0]] * 10)
        with self.assertRaises(shardmat.service.NotFoundError):
            self.service.vector(free.id)

    def test_vectors_whose_objects_are_gone_are_deleted(self):
        x = self.A.vector(self.columns())
        for _ in range(5):
            x = self.A @ x
        kept = self.A.vector().keep().id
        gc.collect()
        self.A.vector().delete()
        self.assertEqual({one["id"] for one in self.service.vectors()}, {x.id, kept})
        self.service.vector(kept).delete()

    def test_values(self):
        x = self.columns()
        before, plain = self.A.info()["generation"], self.A @ x
        after = self.A.update_values(2 * self.matrix.data)
        self.assertGreater(after, before)
        self.assertEqual((self.A @ x).tobytes(), (2 * plain).tobytes())
        self.assertEqual(self.A.multiply(x, generation=after).tobytes(), (2 * plain).tobytes())
        with self.assertRaises(shardmat.service.RefusedError):
            self.A.update_values(self.matrix.data, generation=before)
        self.A.update_values(self.matrix.data, generation=after)
        self.assertEqual((self.A @ x).tobytes(), plain.tobytes())
        self.A.pin()
        self.assertTrue(self.A.info()["pinned"])
        self.A.pin(False)
        self.assertFalse(self.A.info()["pinned"])

    def test_threads_share_a_service(self):
        x = [self.columns(seed=seed) for seed in range(8)]
        expected, wrong = [self.expected(one) for one in x], []

        def client(number):
            for turn in range(20):
                which = (number + turn) % len(x)
                if (self.A @ x[which]).tobytes() != expected[which]:
                    wrong.append((number, turn))

        at_once(8, client)
        self.assertEqual(wrong, [])

    def test_a_child_has_connections_of_its_own(self):
        x = self.columns()
        expected = self.expected(x)
        self.assertEqual((self.A @ x).tobytes(), expected)
        children = []
        for _ in range(3):
            child = os.fork()
            if child == 0:
                good = all((self.A @ x).tobytes() == expected for _ in range(20))
                os._exit(0 if good else 1)
            children.append(child)
        good = all((self.A @ x).tobytes() == expected for _ in range(20))
        self.assertEqual([os.waitpid(child, 0)[1] for child in children], [0, 0, 0])
        self.assertTrue(good)

    def test_events(self):
        events = self.service.events()
        self.assertEqual(next(events)[0], "service")
        self.service.load("seen", "bar.h5").unload()
        seen = [next(events) for _ in range(2)]
        self.assertEqual([(event, data["name"]) for event, data in seen], [("matrix", "seen")] * 2)
        events.close()

    def test_a_load_that_another_client_began(self):
        matrices = []
        at_once(4, lambda number: matrices.append(self.service.load("same", "elasticity_bar.mtx.gz")))
        self.assertEqual([one.shape for one in matrices], [(975, 975)] * 4)
        self.service.load("same", "elasticity_bar.mtx.gz", pinned=True)
        self.assertTrue(self.service.matrix("same").info()["pinned"])
        self.service.unload("same")


class OverUnixSocket(Conformance, ServiceClient):
    def test_arrays_of_a_program(self):
        """On a service that takes some, and keeps them."""
        server = Service(self.library, self.folder / "arrays", "--ranks", 2, "--upload-limit", "10MB")
        self.addCleanup(server.close)
        server.wait_until_ready()
        client = shardmat.connect(server.state, timeout=LIMIT)
        x, a = self.columns(), self.matrix
        wide = sp.csr_matrix((a.data, a.indices.astype(np.int64), a.indptr.astype(np.int64)), a.shape)
        forms = (a.tocsr(), wide, a.tocsc(), a.tocoo(), sp.csr_array(a), a.toarray(), a.astype(np.float32))
        for number, form in enumerate(forms):
            sent = client.matrix_from(form, f"m{number}", solvable=True)
            self.assertEqual((sent.shape, sent.nnz, sent.dtype), (a.shape, np.count_nonzero(form) if number == 5 else a.nnz, np.float32 if number == 6 else np.float64))
            np.testing.assert_allclose(sent @ x.astype(sent.dtype), form @ x.astype(sent.dtype), rtol=0, atol=1e-2 if number == 6 else 1e-9)
        twice = sp.csr_matrix((np.ones(3), np.array([0, 0, 1]), np.array([0, 2, 3])), (2, 2))
        self.assertEqual((client.load("twice", twice) @ np.ones(2)).tolist(), [2, 1])
        self.assertEqual(twice.nnz, 3)  # the caller's matrix is as it was
        whole = client.matrix_from(sp.csr_matrix(np.array([[1, 2], [0, 3]])))
        self.assertEqual((whole @ np.ones(2)).tolist(), [3, 3])
        self.assertRegex(whole.name, "^arrays-[0-9a-f]{12}$")
        with self.assertRaisesRegex(shardmat.service.RefusedError, "row 1, entry 1: the value nan is not finite"):
            client.matrix_from(sp.csr_matrix(np.array([[1, 0], [np.nan, 1]])), "twice")
        with self.assertRaisesRegex(ValueError, "real numbers"):
            client.matrix_from(sp.csr_matrix(np.array([[1j]])))
        with self.assertRaisesRegex(shardmat.service.AccessError, "--upload-limit"):
            self.service.matrix_from(twice)
        whole.unload()
        client.close()
        self.assertEqual(server.terminate(), 0)
        server.close()
        server = Service(self.library, self.folder / "arrays", "--ranks", 1, "--upload-limit", "10MB")
        self.addCleanup(server.close)
        server.wait_until_ready()
        client = shardmat.connect(server.state, timeout=LIMIT)
        self.addCleanup(client.close)
        self.assertEqual((client.matrix("twice") @ np.ones(2)).tolist(), [2, 1])
        self.assertEqual(len(client.matrices()), 8)

    def test_close_after_the_end_of_the_service(self):
        server = Service(self.library, self.folder / "short", "--ranks", 1)
        self.addCleanup(server.close)
        server.wait_until_ready()
        client = shardmat.connect(server.state)
        vector = client.load("bar", "bar.h5").vector(2)
        self.assertEqual(server.terminate(), 0)
        del vector
        client.close()
        client.close()
        with self.assertRaises(shardmat.service.UnreachableError):
            client.matrices()


class OverHttp(Conformance, HttpClient):
    def test_tokens(self):
        for token in (None, "wrong"):
            with self.assertRaises(shardmat.service.AccessError) as caught:
                self.connected(token=token).matrices()
            self.assertEqual((caught.exception.status, caught.exception.code), (401, "unauthorized"))
            self.assertIsInstance(caught.exception, PermissionError)
        by_file = self.connected(token=None, token_file=self.server.state / "token")
        self.assertEqual(by_file.matrix("bar").shape, (975, 975))
        for wrong in ("two words", "new\nline", "", "ä"):
            with self.assertRaisesRegex(ValueError, "no token"):
                self.connected(token=wrong)
        with self.assertRaisesRegex(ValueError, "two words for one thing"):
            self.connected(token="a", token_file="b")

    def test_the_environment_names_the_service(self):
        program = ("import shardmat, numpy; A = shardmat.connect(timeout=60).matrix('bar'); "
                   "print(float((A @ numpy.ones(975)).sum()))")
        variables = {"SHARDMAT_REMOTE": f"http://127.0.0.1:{self.server.port()}", "SHARDMAT_REMOTE_TOKEN_FILE": str(self.server.state / "token")}
        out = subprocess.run([sys.executable, "-c", program], env={**os.environ, **variables}, capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(out.stderr, "")
        self.assertEqual(float(out.stdout), float((self.A @ np.ones(975)).sum()))

    def test_memory_needs_the_unix_socket(self):
        with self.assertRaisesRegex(ValueError, "Unix socket"):
            self.service.memory(1000)


@unittest.skipUnless(has_tls(), "the program was built without OpenSSL")
class OverTls(Conformance, ServiceClient):
    @classmethod
    def options(cls):
        for name in ("one", "two"):
            make_certificate(cls.folder, name)
        return (*LISTEN, "--tls-certificate", cls.folder / "one.pem", "--tls-key", cls.folder / "one.key")

    @classmethod
    def connected(cls, **options):
        return shardmat.connect(f"https://localhost:{cls.server.port('https')}",
                                **{"timeout": LIMIT, "token": cls.server.token(), "ca": cls.folder / "one.pem", **options})

    def test_who_it_is(self):
        for ca in (None, self.folder / "two.pem"):
            with self.assertRaisesRegex(shardmat.service.UnreachableError, "does not prove who it is.*ca=FILE"):
                self.connected(ca=ca).matrices()
        import ssl

        context = ssl.create_default_context(cafile=self.folder / "one.pem")
        self.assertEqual(self.connected(ca=context).matrix("bar").shape, (975, 975))
        with self.assertRaises(shardmat.Error):  # HTTP to a port of TLS
            shardmat.connect(f"http://localhost:{self.server.port('https')}", token="a", timeout=LIMIT).matrices()


if __name__ == "__main__":
    unittest.main()
