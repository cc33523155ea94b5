"""The client of the service: memory that it shares, lost ranks, requests that are sent again, and the client alone."""

import collections
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

import numpy as np
from service_client import CG, ServiceClient

import shardmat
from service import at_once
from support import LIMIT, ROOT

PACKAGE = pathlib.Path(shardmat.__file__).parent


class SharedMemory(ServiceClient):
    @classmethod
    def options(cls):
        return ("--access-log", cls.folder / "access.log")

    def bytes_in_memory(self, place, count):
        """Bytes of the bodies, in and out, of the requests with x and something else in memory, as the server counts them."""
        def found():
            lines = [json.loads(line) for line in (self.folder / "access.log").read_text().splitlines()]
            return [(line["bytes_in"], line["bytes_out"]) for line in lines
                    if place in line["path"] and "x_at=" in line["path"]]

        self.server.wait_for("the log", lambda: len(found()) >= count)
        return found()

    def test_nothing_goes_through_the_socket(self):
        with self.service.memory(1 << 20) as memory:
            for k in (None, 1, 3):
                x, y = memory.empty((975,) if k is None else (975, k)), memory.empty((975,) if k is None else (975, k))
                x[...] = self.columns(k)
                expected = self.expected(x.copy())
                self.assertIs(self.A.multiply(x, out=y), y)
                self.assertEqual(y.tobytes(order="F"), expected)
                self.assertEqual((self.A @ x).tobytes(order="F"), expected)  # the answer is a body
                self.assertEqual(self.A.multiply(x.copy(), out=y).tobytes(order="F"), expected)  # x is a body
                before = y.copy()
                self.A.multiply(x, out=y, alpha=2.0, beta=3.0)
                np.testing.assert_allclose(y, 2 * self.matrix @ x + 3 * before, rtol=1e-12, atol=1e-9)
            self.assertEqual(self.bytes_in_memory("y_at=", 6), [(0, 0)] * 6)
            part = memory.empty((975, 4))
            part[...] = self.columns(4)
            self.assertEqual((self.A @ part[:, 1:3]).tobytes(order="F"), self.expected(part[:, 1:3].copy()))
            self.assertEqual((self.A @ part.T.copy().T).tobytes(), (self.A @ part).tobytes())
            with self.assertRaisesRegex(MemoryError, "does not fit"):
                memory.empty(1 << 20)
            with self.assertRaisesRegex(shardmat.service.RefusedError, "overlap"):
                self.A.multiply(x, out=x)
        x[...] = 1  # stays valid, and is an array as any other now
        self.assertEqual((self.A @ x).tobytes(order="F"), self.expected(x))

    def test_nothing_of_solves_goes_through_the_socket(self):
        G = self.service.load("grid", "grid.h5", solvable=True)
        links = self.service.load("links", "links.h5", solvable=True)
        n = G.shape[0]
        with self.service.memory(1 << 20) as memory, self.service.memory(1 << 20) as other:
            for k in (None, 3):
                shape = (n,) if k is None else (n, k)
                b, x, weights = (memory.empty(shape) for _ in range(3))
                b[...] = self.columns(k, n=n)
                weights[...] = abs(b)
                expected = G.solve(b.copy(), alone=1, **CG)
                self.assertIs(G.solve(b, out=x, alone=1, **CG), x)
                self.assertEqual(x.tobytes(order="F"), expected.tobytes(order="F"))
                self.assertIs(G.solve(b, x, out=x, alone=1, **CG), x)  # from the solution
                self.assertEqual(x.tobytes(order="F"), expected.tobytes(order="F"))
                scores = links.pagerank(weights.copy())
                self.assertIs(links.pagerank(weights, out=x), x)
                self.assertEqual(x.tobytes(order="F"), scores.tobytes(order="F"))
                self.assertIs(G.solve(b, out=b, alone=1, **CG), b)
                self.assertEqual(b.tobytes(order="F"), expected.tobytes(order="F"))
            self.assertEqual(self.bytes_in_memory("b_at=", 8), [(0, 0)] * 8)
            b, apart = memory.empty(n), other.empty(n)
            b[...] = self.columns(n=n)
            expected = G.solve(b.copy(), alone=1, **CG).tobytes()
            self.assertEqual(G.solve(b, out=apart, alone=1, **CG).tobytes(), expected)
            plain = np.empty(n, "float32")
            np.testing.assert_array_equal(G.solve(b, out=plain, alone=1, **CG), np.frombuffer(expected).astype("float32"))
            with self.assertRaises(shardmat.NotConvergedError) as caught:
                G.solve(b, out=apart, max_iterations=1, **CG)
            self.assertEqual(caught.exception.x.shape, (n,))
            self.assertEqual(apart.tobytes(), expected)  # what has failed is not written
            for wrong in (np.empty(n + 1), [0.0] * n):
                with self.assertRaisesRegex(ValueError, "out must be"):
                    G.solve(b, out=wrong, **CG)

    def test_threads(self):
        memory = self.service.memory(1 << 20)
        x = [memory.empty(975) for _ in range(8)]
        y, wrong = [memory.empty(975) for _ in range(8)], []
        for seed, one in enumerate(x):
            one[...] = self.columns(seed=seed)
        expected = [self.expected(one) for one in x]

        def client(number):
            for _ in range(20):
                y[number][...] = 0
                if self.A.multiply(x[number], out=y[number]).tobytes() != expected[number]:
                    wrong.append(number)

        at_once(8, client)
        self.assertEqual(wrong, [])
        with self.assertRaises(shardmat.service.TooLargeError):
            self.service.memory(1 << 50)
        memory.close()


class LostRanks(ServiceClient):
    def test_products_go_on(self):
        x = self.columns()
        patient = self.connected(retries=1000).matrix("bar")  # ranks take long to start on a busy machine
        expected = (patient @ x).tobytes()
        vector = self.A.vector(x)
        for _ in range(2):
            os.kill(self.server.workers()[0], signal.SIGKILL)
            self.assertEqual((patient @ x).tobytes(), expected)  # waits until there are new ranks
        with self.assertRaises(shardmat.service.NotFoundError) as caught:
            vector.get()
        self.assertEqual(caught.exception.status, 410)

    def test_without_retries(self):
        hasty = self.connected(retries=0)
        A = hasty.matrix("bar")
        os.kill(self.server.process.pid, signal.SIGSTOP)
        try:
            with self.assertRaisesRegex(shardmat.service.TimedOut, "has not answered in time"):
                A.multiply(self.columns(), timeout=0.2)
        finally:
            os.kill(self.server.process.pid, signal.SIGCONT)
        os.kill(self.server.workers()[0], signal.SIGKILL)

        def refused():
            try:
                A @ self.columns()
            except shardmat.RankLostError as error:
                self.assertEqual(error.status, 503)
                return True
            except shardmat.Error:
                return False
            return False

        self.server.wait_for("a refusal", refused)
        self.server.wait_until_ready()


class Script(threading.Thread):
    """A server that gives each request the next of some answers: bytes, or None to end the connection; the last one stays."""

    def __init__(self, *answers):
        super().__init__(daemon=True)
        self.answers, self.requests = list(answers), []
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
            lines.read(length)
        self.requests.append(head[0].decode())
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            return False
        client.sendall(answer)
        return True

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

    def test_what_is_not_sent_again(self):
        matrix = {"name": "m", "state": "ready", "rows": 2, "cols": 2, "nnz": 2, "type": "f64"}
        for first, kind in ((busy(503, "rank_lost", 1), shardmat.service.UnavailableError), (None, shardmat.service.UnreachableError)):
            for call in (lambda A, v: A.multiply(np.ones(2), out=v, beta=1.0), lambda A, v: A.solve(np.ones(2)),
                         lambda A, v: A.update_values(np.ones(2), generation=3)):
                script = self.script(first)
                service = shardmat.connect(script.url, token="t", timeout=LIMIT)
                A = shardmat.service.Matrix(service, matrix)
                vector = shardmat.service.Vector(service, {"id": "vec-1", "columns": 1, "n": 2, "type": "f64"}, owned=False)
                with self.assertRaises(kind):
                    call(A, vector)
                self.assertEqual(len(script.requests), 1, script.requests)
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
        for answers, name in (((None,), "mine"), ((answer(403, b'{"error": "no"}'),), None)):  # the caller knows it; nothing was begun
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


class Alone(ServiceClient):
    PROGRAM = """
import sys, numpy
sys.path = [sys.argv[1]] + [path for path in sys.path if path != sys.argv[2]]
import shardmat_service
A = shardmat_service.connect(sys.argv[3], timeout=600).matrix("bar")
print(repr(float((A @ numpy.ones(975)).sum())))
assert not [name for name in sys.modules if name == "shardmat" or name.startswith("shardmat.") or "_shardmat" in name or name == "scipy"], sys.modules
"""

    def product_of(self, folder):
        out = subprocess.run([sys.executable, "-c", self.PROGRAM, folder, PACKAGE.parent, self.server.socket], capture_output=True,
                             text=True, timeout=LIMIT)
        self.assertEqual(out.stderr, "")
        self.assertEqual(float(out.stdout), float((self.A @ np.ones(975)).sum()))

    def test_these_files_alone(self):
        shutil.copytree(PACKAGE / "service", self.path("shardmat_service"), ignore=shutil.ignore_patterns("__pycache__"))
        self.product_of(self.directory)

    def test_a_wheel_of_them(self):
        source = PACKAGE / "service"
        if not (source / "pyproject.toml").exists():  # in the build folder are only files that are installed
            source = ROOT / "tools" / "python" / "shardmat" / "service"
        pip = [sys.executable, "-m", "pip"]
        if subprocess.run([*pip, "--version"], capture_output=True).returncode != 0 or importlib.util.find_spec("setuptools") is None:
            self.skipTest("pip or setuptools are missing")
        shutil.copytree(source, self.path("source"), ignore=shutil.ignore_patterns("__pycache__"))
        result = subprocess.run([*pip, "install", "--no-index", "--no-build-isolation", "--no-deps", "--target", self.path("target"), self.path("source")],
                                capture_output=True, text=True, timeout=LIMIT, env={**os.environ, "PIP_CACHE_DIR": str(self.path("cache"))})
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.product_of(self.path("target"))

    def test_the_package_loads_no_library(self):
        program = "import shardmat, sys; shardmat.connect('http://a'); assert not any('_shardmat' in name or name == 'numpy' for name in sys.modules)"
        subprocess.run([sys.executable, "-c", program], check=True, timeout=LIMIT)


if __name__ == "__main__":
    unittest.main()
