"""The client of the service with servers that say what a script has: requests that are sent again, silence, wrong addresses."""

import asyncio
import collections
import concurrent.futures
import socket
import tempfile
import threading
import time
import unittest
import unittest.mock

import numpy as np
import service_client  # noqa: F401: finds support

import shardmat
from shardmat.service.connection import Deadline
from support import LIMIT


class Cut(bytes):
    """An answer after which the connection ends."""


class Script(threading.Thread):
    """A server that gives each request the next of some answers: bytes, or None to end the connection; the last one stays."""

    def __init__(self, *answers):
        super().__init__(daemon=True)
        self.answers, self.requests, self.bodies = list(answers), [], []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.start()

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client:
                while self.serve(client):
                    pass

    def serve(self, client):
        with client.makefile("rb") as lines:
            head = [line.rstrip(b"\r\n") for line in iter(lines.readline, b"\r\n") if line] if not self.closed(client) else []
            if not head:
                return False
            length = next((int(line.split(b":")[1]) for line in head if line.lower().startswith(b"content-length:")), 0)
            self.bodies.append(lines.read(length))
        self.requests.append(head[0].decode())
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            return False
        client.sendall(answer)
        return not isinstance(answer, Cut)

    def closed(self, client):
        try:
            return client.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            return True

    def close(self):
        self.listener.close()


def answer(status, body=b"{}", *fields):
    return b"\r\n".join([f"HTTP/1.1 {status} X".encode(), f"Content-Length: {len(body)}".encode(), *[field.encode() for field in fields], b"", body])


def busy(status, code, milliseconds):
    return answer(status, f'{{"error": "later", "code": "{code}", "request_id": "r", "retry_after_ms": {milliseconds}}}'.encode())


class Retries(unittest.TestCase):
    def script(self, *answers):
        script = Script(*answers)
        self.addCleanup(script.close)
        return script

    def test_what_is_sent_again(self):
        for first in (busy(429, "busy", 1), busy(503, "starting", 1), answer(429, b"{}", "Retry-After: 0"), None,
                      busy(503, "rank_lost", 1)):
            script = self.script(first, first, answer(200, b'{"matrices": []}'))
            with shardmat.connect(script.url, token="t", timeout=LIMIT) as service:
                self.assertEqual(service.matrices(), [])
                self.assertEqual(script.requests, ["GET /v1/matrices HTTP/1.1"] * 3)

    def test_retries_are_bounded(self):
        script = self.script(busy(429, "busy", 1))
        service = shardmat.connect(script.url, token="t", retries=3, timeout=LIMIT)
        with self.assertRaises(shardmat.service.BusyError) as caught:
            service.matrices()
        self.assertEqual(len(script.requests), 4)
        self.assertEqual((caught.exception.retry_after, caught.exception.code), (0.001, "busy"))
        script = self.script(busy(429, "busy", 60_000))  # longer than the timeout: it is not waited for
        service = shardmat.connect(script.url, token="t", timeout=20)
        with self.assertRaises(shardmat.service.BusyError):
            service.matrices()
        self.assertEqual(len(script.requests), 1)

    # What changes something, each with the answer to it.
    CHANGES = ((lambda A, v: A.multiply(np.ones(2), out=v, beta=1.0), answer(204, b"")),
               (lambda A, v: A.update_values(np.ones(2), generation=3), answer(200, b'{"generation": 4}')),
               *((call, answer(202, b'{"id": "job-1", "state": "queued"}')) for call in (
                   lambda A, v: A.solve_async(np.ones(2)), lambda A, v: A.eigsh_async(1), lambda A, v: A.pagerank_async())))
    NUMBERS = np.array([3.0, 4.0])
    # What may come twice, each with the answers from the one to it on.
    PURE = ((lambda A, x: A.multiply(x, out=x), [answer(200, NUMBERS.tobytes())]),
            (lambda A, x: A.multiply(np.ones(2), out=x, beta=2.0), [answer(200, NUMBERS.tobytes())]),
            (lambda A, x: A.solve(x, out=x), [answer(200, NUMBERS.tobytes())]), (lambda A, x: A.pagerank(x, out=x), [answer(200, NUMBERS.tobytes())]),
            (lambda A, x: A.eigsh(1, which="LA", return_eigenvectors=False), [answer(200, b'{"id": "job-1", "state": "done"}'), answer(
                200, b'{"id": "job-1", "kind": "eigen", "state": "done", "columns": 1, "type": "f64", "result": [{"value": 7}]}'), answer(204, b"")]))

    def asked(self, call, x, *answers, **options):
        """The script after a call for a matrix of a service that has these answers, and what it returned."""
        script = self.script(*answers)
        service = shardmat.connect(script.url, token="t", timeout=LIMIT, **options)
        A = shardmat.service.Matrix(service, {"name": "m", "state": "ready", "rows": 2, "cols": 2, "nnz": 2, "type": "f64"})
        try:
            return script, call(A, x)
        except shardmat.Error as error:
            return script, error

    def vector(self):
        return shardmat.service.Vector(None, {"id": "vec-1", "columns": 1, "n": 2, "type": "f64"}, owned=False)

    def test_what_was_refused_before_it_began_is_sent_again(self):
        for refusal in (busy(429, "busy", 1), busy(503, "starting", 1), busy(503, "restarting", 1), busy(503, "too_many_connections", 1)):
            for call, last in self.CHANGES:
                script, _ = self.asked(call, self.vector(), refusal, refusal, last)
                self.assertEqual((script.requests, len(script.requests)), (script.requests[:1] * 3, 3))
                self.assertEqual(script.bodies, script.bodies[:1] * 3)
            for call, last in self.PURE:
                script, _ = self.asked(call, np.ones(2), refusal, refusal, *last)
                self.assertEqual((script.requests[:3], script.bodies[:3]), (script.requests[:1] * 3, script.bodies[:1] * 3))
        for call, _ in self.CHANGES:  # not for ever
            script, error = self.asked(call, self.vector(), busy(503, "restarting", 1), retries=2)
            self.assertEqual((len(script.requests), error.code), (3, "restarting"))

    def test_what_is_pure_is_sent_again(self):
        """With the same body, although the answer goes where it lies."""
        half = Cut(answer(200, self.NUMBERS.tobytes())[:-8])
        for first in (None, half, busy(503, "rank_lost", 1)):
            for call, last in self.PURE:
                x = np.ones(2)
                script, y = self.asked(call, x, first, *last)
                self.assertEqual((script.requests[:2], script.bodies[:2]), (script.requests[:1] * 2, script.bodies[:1] * 2))
                self.assertEqual(y.tolist(), self.NUMBERS.tolist() if len(last) == 1 else [7])

    def test_a_first_guess_is_sent_again_to_new_ranks(self):
        made, solved = answer(201, b'{"id": "vec-1", "columns": 1, "n": 2, "type": "f64"}'), answer(200, self.NUMBERS.tobytes())
        put, lost = answer(204, b""), answer(410, b'{"error": "lost", "code": "vector_lost"}')
        script, x = self.asked(lambda A, x: A.solve(np.ones(2), x, out=x), np.ones(2), made, put, None, lost, put, made, put, solved, put)
        self.assertEqual(x.tolist(), self.NUMBERS.tolist())
        asked = [request.split("?")[0].split()[:2] for request in script.requests]
        make, write, solve, drop = ["POST", "/v1/vectors"], ["PUT", "/v1/vectors/vec-1"], ["POST", "/v1/matrices/m/solve"], ["DELETE", "/v1/vectors/vec-1"]
        self.assertEqual(asked, [make, write, solve, solve, drop, make, write, solve, drop])
        self.assertEqual(script.bodies[6], script.bodies[1])
        script, error = self.asked(lambda A, x: A.solve(np.ones(2), x), np.ones(2), *(made, put, lost, put) * 2)
        self.assertEqual((error.code, len(script.requests)), ("vector_lost", 8))

    def test_what_is_not_sent_again(self):
        for first, kind in ((busy(503, "rank_lost", 1), shardmat.service.UnavailableError), (None, shardmat.service.UnreachableError),
                            (answer(503, b"a proxy says no"), shardmat.service.UnavailableError)):
            for call, _ in self.CHANGES:
                script, error = self.asked(call, self.vector(), first)
                self.assertIsInstance(error, kind)
                self.assertEqual(len(script.requests), 1, script.requests)
        # A job that has lost its ranks twice.
        lost = b'{"error": "lost", "code": "rank_lost", "retry_after_ms": 1}'
        job = answer(200, b'{"id": "job-1", "kind": "solve", "state": "failed", "reason": "lost", "code": "rank_lost", "columns": 1, "type": "f64"}')
        for call, _ in self.PURE[2:]:
            script, error = self.asked(call, np.ones(2), answer(503, lost, "Shardmat-Job: job-1"), job, answer(204, b""))
            self.assertIsInstance(error, shardmat.service.UnavailableError)
            self.assertEqual([request.split()[0] for request in script.requests], ["POST", "GET", "DELETE"])
        for status, code in ((503, "draining"), (500, "internal"), (404, "no_matrix"), (422, "wrong_length")):
            script = self.script(busy(status, code, 1))
            with self.assertRaises(shardmat.service.ServiceError) as caught:
                shardmat.connect(script.url, token="t", timeout=LIMIT).matrices()
            self.assertEqual((caught.exception.status, len(script.requests)), (status, 1))

    def test_an_idle_connection_that_the_server_closed_is_not_used(self):
        script = self.script(answer(200, b'{"matrices": []}'), None)
        service = shardmat.connect(script.url, token="t", timeout=LIMIT, retries=0)
        service.matrices()
        connection = service._connections._idle[0]
        connection._socket.shutdown(socket.SHUT_RDWR)
        script.answers = [answer(200, b'{"matrices": [1]}')]
        self.assertEqual(service.matrices(), [1])

    def test_silence_and_nonsense(self):
        silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(silent.close)
        for method in ("ready", "matrices", "metrics"):
            with self.assertRaises(TimeoutError):
                getattr(shardmat.connect(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.1), method)()
        for nonsense in (b"SSH-2.0-x\r\n\r\n", b"x" * 70000, b"HTTP/1.1 abc\r\n\r\n"):
            with self.assertRaisesRegex(shardmat.service.UnreachableError, "does not speak HTTP"):
                shardmat.connect(self.script(nonsense).url, retries=0, timeout=LIMIT).matrices()
        with self.assertRaisesRegex(shardmat.service.ServiceError, "the server answered 502: <html>"):
            shardmat.connect(self.script(answer(502, b"<html>")).url, timeout=LIMIT).matrices()

    def test_a_matrix_whose_answer_does_not_come_is_unloaded(self):
        a = np.eye(2)
        cases = (((busy(503, "rank_lost", 1),), shardmat.service.UnavailableError, 1), ((None,), shardmat.service.UnreachableError, 1),
                 ((answer(422, b'{"error": "nan", "code": "failed"}'), busy(409, "loading", 1), busy(409, "loading", 1)), shardmat.service.RefusedError, 3),
                 ((None, busy(404, "no_matrix", 1), busy(404, "no_matrix", 1)), shardmat.service.UnreachableError, 3))
        for answers, kind, asked in cases:
            script = self.script(*answers, answer(200, b"{}"))
            with self.assertRaises(kind) as caught:
                shardmat.connect(script.url, token="t", timeout=LIMIT).matrix_from(a)
            name = script.requests[0].split("?")[0].removeprefix("PUT /v1/matrices/")
            self.assertRegex(name, "^arrays-[0-9a-f]{12}$")
            self.assertEqual(script.requests[1:], [f"POST /v1/matrices/{name}/unload HTTP/1.1"] * asked)
            self.assertNotIn(name, str(caught.exception))
        script = self.script(None, answer(500, b"{}"))  # it cannot be unloaded: then the error has its name
        with self.assertRaisesRegex(shardmat.service.UnreachableError, "may keep the matrix as arrays-[0-9a-f]{12}: unload it"):
            shardmat.connect(script.url, token="t", timeout=LIMIT).matrix_from(a)
        for answers, name in (((None,), "mine"), ((answer(403, b'{"error": "no"}'),), None), ((busy(503, "restarting", 60_000),), None)):  # the caller knows it; nothing was begun
            script = self.script(*answers, answer(200, b"{}"))
            with self.assertRaises(shardmat.service.ServiceError):
                shardmat.connect(script.url, token="t", timeout=LIMIT).matrix_from(a, name)
            self.assertEqual(len(script.requests), 1, script.requests)
        script = self.script(answer(200, b"{}"))
        service, stopped = shardmat.connect(script.url, token="t", timeout=LIMIT), []
        once = service._once

        def stop(*arguments):
            if not stopped:
                stopped.append(arguments[1])
                raise KeyboardInterrupt
            return once(*arguments)

        service._once = stop
        with self.assertRaises(KeyboardInterrupt):
            service.matrix_from(a)
        self.assertEqual(script.requests, [f"POST {stopped[0].split('?')[0]}/unload HTTP/1.1"])

    def full(self):
        """A place where connections are neither taken nor refused."""
        listener = socket.create_server(("127.0.0.1", 0), backlog=0)
        self.addCleanup(listener.close)
        where = listener.getsockname()
        for _ in range(4):
            waits = socket.socket()
            self.addCleanup(waits.close)
            waits.setblocking(False)
            waits.connect_ex(where)
        return where

    def resolve(self, *places):
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", where) for where in places]
        patch = unittest.mock.patch("socket.getaddrinfo", lambda *_, **__: found)
        patch.start()
        self.addCleanup(patch.stop)

    def test_the_addresses_of_a_name_share_the_time(self):
        script = self.script(answer(200, b'{"matrices": []}'))
        self.resolve(self.full(), self.full(), script.listener.getsockname())
        with shardmat.connect("http://lab", token="t", timeout=3) as service:
            self.assertEqual(service.matrices(), [])

    def test_gives_up_a_name_server_that_does_not_answer(self):
        over = threading.Event()
        self.addCleanup(over.set)
        patch = unittest.mock.patch("socket.getaddrinfo", lambda *_, **__: over.wait(10 * LIMIT))
        patch.start()
        self.addCleanup(patch.stop)
        with self.assertRaisesRegex(shardmat.service.TimedOut, "the address of lab"):
            shardmat.connect("http://lab", token="t", timeout=0.2).matrices()

    def test_a_name_that_nobody_knows(self):
        with unittest.mock.patch("socket.getaddrinfo", side_effect=socket.gaierror(-2, "Name or service not known")):
            with self.assertRaisesRegex(shardmat.service.UnreachableError, "Name or service not known"):
                shardmat.connect("http://lab", token="t", timeout=LIMIT).matrices()

    def test_a_handshake_has_the_time_that_is_left(self):
        silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(silent.close)
        self.resolve(*(self.full() for _ in range(9)), silent.getsockname())
        begun = time.monotonic()
        with self.assertRaises(shardmat.service.TimedOut):
            shardmat.connect("https://lab", timeout=4).matrices()
        self.assertLess(time.monotonic() - begun, 20)  # each address alone had 4 s

    def test_events_of_a_service_that_does_not_answer(self):
        silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(silent.close)
        ended = self.script(None)
        for url, timeout, kind in ((f"http://127.0.0.1:{silent.getsockname()[1]}", 0.2, shardmat.service.TimedOut),
                                   (ended.url, LIMIT, shardmat.service.UnreachableError)):
            made = []
            service = shardmat.connect(url, timeout=timeout)
            connect = service._connections.connect
            service._connections.connect = lambda deadline: made.append(connect(deadline)) or made[-1]
            with self.assertRaises(kind):
                service.events()
            self.assertFalse(made[0].is_open())

    def test_events_whose_connection_is_reset(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def serve():
            client, _ = listener.accept()
            client.recv(65536)
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\nevent: x\ndata: {}\n")
            first.wait(LIMIT)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            client.close()

        first = threading.Event()
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        events = shardmat.connect(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=LIMIT).events()
        self.assertEqual(next(events), ("x", {}))
        first.set()
        with self.assertRaises(shardmat.service.UnreachableError):
            next(events)

    def test_events_of_a_host_that_is_dead(self):
        """It sends nothing any more, and does not end the connection either."""
        head = b"HTTP/1.1 200 OK\r\n\r\n"
        script = self.script(head + b"event: x\ndata: {}\n")
        with unittest.mock.patch("shardmat.service.connection._LONGEST_SILENCE", 0.2):
            events = shardmat.connect(script.url, timeout=LIMIT).events()
            self.assertEqual(next(events), ("x", {}))
            with self.assertRaisesRegex(shardmat.service.UnreachableError, "has sent nothing for 0.2 s"):
                next(events)
        script = self.script(Cut(head + b":\n\n" * 3 + b"event: x\ndata: {}\n"))  # lines that say that it is there
        self.assertEqual(list(shardmat.connect(script.url, timeout=LIMIT).events()), [("x", {})])

    def test_limits_of_any_length(self):
        """Also those for which the system has no number."""
        script = self.script(answer(200, b'{"matrices": []}'))
        for timeout in (1e7, 1e10, 1e300, float("inf")):
            with shardmat.connect(script.url.replace("127.0.0.1", "localhost"), token="t", timeout=timeout) as service:
                self.assertEqual(service.matrices(), [])
        lock, deadline = threading.Lock(), Deadline(1e10)
        with deadline.holding(lock):
            self.assertTrue(lock.locked())
            with self.assertRaises(TimeoutError), Deadline(0.05).holding(lock):
                pass
        self.assertFalse(lock.locked())

    def test_calls_that_are_cancelled(self):
        silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(silent.close)
        service = shardmat.connect(f"http://127.0.0.1:{silent.getsockname()[1]}")
        A = shardmat.service.Matrix(service, {"name": "m", "state": "ready", "rows": 2, "cols": 2, "nnz": 2, "type": "f64"})
        calls = [A.multiply_async(np.ones(2)) for _ in range(40)]  # some run, some wait
        self.assertFalse(any(call.done() for call in calls))
        self.assertTrue(all(call.cancel() for call in calls))
        for call in calls:
            with self.assertRaises(concurrent.futures.CancelledError):
                call.result(LIMIT)
            self.assertTrue(call.cancelled())

        async def impatient():
            task = asyncio.ensure_future(A.multiply_async(np.ones(2)))
            await asyncio.sleep(0.05)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(service.load_async("m", "m.h5"), 0.05)
            call = A.T.multiply_async(np.ones(2))
            asyncio.get_running_loop().call_later(0.05, call.cancel)
            with self.assertRaises(asyncio.CancelledError):
                await call

        asyncio.run(impatient())
        end = time.monotonic() + LIMIT
        while any(thread.name == "shardmat-calls" for thread in threading.enumerate()):  # none is left behind
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        with self.assertRaises(shardmat.service.TimedOut):
            A.multiply_async(np.ones(2), timeout=0.1).result(LIMIT)
        call = shardmat.connect(self.script(answer(200, b"{}")).url).load_async("m", "m.h5")
        self.assertIsInstance(call.exception(LIMIT), Exception)  # what the answer says is no matrix
        self.assertFalse(call.cancel() or call.cancelled())

    def test_what_cannot_be_fetched_now_stays(self):
        lost = answer(422, b'{"error": "far", "code": "not_converged"}', "Shardmat-Job: job-1")
        for call, first in ((lambda A, x: A.eigsh(1, which="LA"), answer(200, b'{"id": "job-1", "state": "done"}')),
                            (lambda A, x: A.eigsh(1, which="LA"), lost), (lambda A, x: A.solve(x), lost)):
            script, error = self.asked(call, np.ones(2), first, None, retries=0)
            self.assertIsInstance(error, shardmat.service.UnreachableError)
            self.assertRegex(str(error), r"service\.job\('job-1'\)\.result\(\)")

    def test_an_answer_that_breaks_off_is_fetched_from_its_job(self):
        half = Cut(answer(200, self.NUMBERS.tobytes(), "Shardmat-Job: job-1")[:-8])
        done = answer(200, b'{"id": "job-1", "kind": "solve", "state": "done", "columns": 1, "type": "f64"}')
        numbers, gone = answer(200, self.NUMBERS.tobytes()), answer(404, b'{"error": "no", "code": "no_job"}')
        for call, _ in self.PURE[2:4]:
            for answers, asked in (((half, done, numbers, answer(204, b"")), ["POST", "GET", "GET", "DELETE"]),
                                   ((half, gone, numbers), ["POST", "GET", "POST"])):
                script, x = self.asked(call, np.ones(2), *answers)
                self.assertEqual(x.tolist(), self.NUMBERS.tolist())
                self.assertEqual([request.split()[0] for request in script.requests], asked)
                self.assertEqual(script.bodies[-1] if asked[-1] == "POST" else script.bodies[0], script.bodies[0])
        script = self.script(answer(200, self.NUMBERS.tobytes(), "Shardmat-Job: job-1")[:-8])  # and nothing more
        A = shardmat.service.Matrix(shardmat.connect(script.url), {"name": "m", "state": "ready", "rows": 2, "cols": 2, "nnz": 2, "type": "f64"})
        with self.assertRaisesRegex(shardmat.service.TimedOut, r"service\.job\('job-1'\)\.result\(\)"):
            A.solve(np.ones(2), timeout=0.3)

    def test_what_was_fetched_is_the_result(self):
        """Also if the service cannot forget the job then."""
        done = answer(200, b'{"id": "job-1", "kind": "solve", "state": "done", "columns": 1, "type": "f64"}')
        for refusal in (busy(503, "draining", 1), busy(429, "busy", 60_000), busy(403, "forbidden", 1), None):
            script = self.script(done, answer(200, self.NUMBERS.tobytes()), refusal)
            job = shardmat.service.Job(shardmat.connect(script.url, timeout=20, retries=1), {"id": "job-1", "state": "queued"})
            self.assertEqual(job.result().tolist(), self.NUMBERS.tolist())

    def test_what_several_threads_do_at_once(self):
        script = self.script(answer(200, b"{}"))
        service = shardmat.connect(script.url, token="t", timeout=LIMIT)

        class Taken(collections.deque):
            """Another thread takes the path between a look at the length and the taking."""

            def __len__(self):
                length = super().__len__()
                self.clear()
                return length

            def __bool__(self):
                return len(self) > 0

        service._dropped = Taken(["/v1/vectors/vec-1"])
        service.delete_dropped()

        class OfOthers:
            def place_of(self, array):  # meanwhile another thread makes one
                kept.append(OfOthers())
                service._memories.add(kept[-1])
                return None

        kept = [OfOthers(), OfOthers()]
        for one in kept:
            service._memories.add(one)
        self.assertEqual(service.memory_of(np.ones(2)), (None, None))
        service._memories.clear()

    def test_nobody_listens(self):
        with socket.create_server(("127.0.0.1", 0)) as one:
            port = one.getsockname()[1]
        with self.assertRaisesRegex(ConnectionError, "no service listens on http://127.0.0.1.*shardmat serve"):
            shardmat.connect(f"http://127.0.0.1:{port}", timeout=LIMIT).matrices()
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(shardmat.service.UnreachableError, "no service listens on .*http.sock"):
                shardmat.connect(folder).matrices()

    def test_addresses(self):
        for where in ("http://", "http://a:b", "http://a/path", "http://a@b", "https://a?x", "127.0.0.1:8980", "http://a:99999"):
            with self.assertRaisesRegex(ValueError, "no address of a service"):
                shardmat.connect(where)
        for where, host, port in (("http://a", "a", 80), ("https://[::1]/", "::1", 443), ("https://a:1", "a", 1)):
            address = shardmat.connect(where).address
            self.assertEqual((address.host, address.port), (host, port))
        self.assertEqual(str(shardmat.connect("unix:/run/x.sock").address), "/run/x.sock")
        with self.assertRaisesRegex(ValueError, "no TLS"):
            shardmat.connect("http://a", ca="x.pem")
        with self.assertRaisesRegex(ValueError, "timeout"):
            shardmat.connect("http://a", timeout=0)


if __name__ == "__main__":
    unittest.main()
