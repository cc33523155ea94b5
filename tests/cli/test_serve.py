"""The service as clients see it: products of resident matrices, lost ranks, hostile requests, and its end."""

import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

import numpy as np

from service import Service
from support import (BACKEND, DATA, INPUT, LIMIT, OK, PROGRAM, RANK_LOST, RESOURCES, USAGE, CliTest, environment, fem_matrix,
                     read_vector, run, write_vector, with_growing_deadline)
from test_schemas import faults, load as load_schema

NAMES = {"f64": np.float64, "f32": np.float32}


class ServiceTest(CliTest):
    """Each test has a library with a shard file, bar.h5, and the file that it was made from."""

    @classmethod
    def setUpClass(cls):
        cls.library = pathlib.Path(tempfile.mkdtemp(prefix="shardmat_library_"))
        cls.addClassCleanup(shutil.rmtree, cls.library, ignore_errors=True)
        shutil.copy(DATA / "elasticity_bar.mtx.gz", cls.library)
        result = run([PROGRAM, "partition", "elasticity_bar.mtx.gz", "bar.h5", "--parts", 2], cls.library)
        assert result.code == OK, result
        cls.matrix = fem_matrix("elasticity_bar")

    def start(self, *options, state="state", **more):
        service = Service(self.library, self.path(state), *options, **more)
        self.addCleanup(service.close)
        service.wait_until_ready()
        return service

    def vector(self, seed, type="f64", columns=1):
        return np.random.default_rng(seed).uniform(-1, 1, (columns, self.matrix.shape[1])).astype(NAMES[type])

    def loaded(self, service, name="bar", source="bar.h5", **more):
        answer = service.load(name, source, **more)
        self.assertEqual(answer.status, 200, answer)
        return answer.json

    def y_of(self, answer, type="f64"):
        self.assertEqual(answer.status, 200, answer)
        return np.frombuffer(answer.body, NAMES[type])

    def assert_bits(self, got, expected, type="f64", close=1e-12):
        """Bytes that the command has, too. On GPUs it and the service measure kernels and may choose different ones: there
        they differ by rounding, at most `close` of the largest number."""
        if BACKEND == "host":
            return self.assertEqual(got, expected)
        got, expected = np.frombuffer(got, NAMES[type]), np.frombuffer(expected, NAMES[type])
        np.testing.assert_allclose(got, expected, rtol=0, atol=(close if type == "f64" else 1e-5) * abs(expected).max())

    def assert_problem(self, answer, status, code, says=""):
        self.assertEqual(answer.status, status, answer)
        self.assertEqual(answer.json["code"], code, answer)
        self.assertIn(says, answer.json["error"])
        self.assertEqual(answer.json["request_id"], answer.headers["X-Request-Id"])
        self.assertNotIn(str(self.library), answer.body.decode())


class Products(ServiceTest):
    def products_of_multiply(self, source, type, ranks, x):
        write_vector(self.path("x.npy"), x)
        self.succeed("multiply", self.library / source, "--x", "x.npy", "--output", "y.npy", "--type", type, "--iterations", 0,
                     "--backend", BACKEND, ranks=ranks)
        return read_vector(self.path("y.npy"))

    def test_bits_are_those_of_multiply(self):
        for ranks in (1, 2):
            service = self.start("--ranks", ranks)
            for type in ("f64", "f32"):
                for source in ("bar.h5", "elasticity_bar.mtx.gz"):
                    with self.subTest(ranks=ranks, type=type, source=source):
                        self.loaded(service, "m", source, type=type)
                        x = self.vector(ranks, type)[0]
                        y = self.y_of(service.multiply("m", x), type)
                        self.assertEqual(y.tobytes(), self.products_of_multiply(source, type, ranks, x).tobytes())
                        self.assertEqual(service.ask("POST", "/v1/matrices/m/unload").status, 200)
            self.assertEqual(service.terminate(), OK, service.report())

    def test_columns_and_alpha(self):
        service = self.start("--ranks", 2)
        k = min(5, self.loaded(service)["widths"][-1]["columns"])  # a busy machine may offer fewer
        x = self.vector(1, columns=k)
        answer = service.multiply("bar", x, f"?k={k}&type=f64")
        self.assertEqual(answer.headers["Shardmat-Shape"], f"{k},{self.matrix.shape[0]}" if k > 1 else str(self.matrix.shape[0]))
        self.assertEqual(answer.headers["Shardmat-Type"], "f64")
        self.assertRegex(answer.headers["Server-Timing"], r"^queue;dur=[\d.]+, copy-in;dur=[\d.]+, product;dur=[\d.]+, copy-out;dur=[\d.]+$")
        single = [self.y_of(service.multiply("bar", column)) for column in x]
        self.assertEqual(answer.body, np.array(single).tobytes())
        self.assertEqual(service.multiply("bar", x[0], "?alpha=-0.25").body, (-0.25 * single[0]).tobytes())
        for x_given in (x[0], np.full_like(x[0], np.nan)):  # x is not read, whichever way a rank takes
            self.assertEqual(self.y_of(service.multiply("bar", x_given, "?alpha=0")).tolist(), [0.0] * self.matrix.shape[0])
        scaled = service.multiply("bar", np.concatenate([x[0], x[1 % k]]), "?alpha=0&beta=2")
        self.assertEqual(scaled.body, (2 * x[1 % k]).tobytes())
        with_nan = x[0].copy()
        with_nan[3] = np.nan
        self.assertTrue(np.isnan(self.y_of(service.multiply("bar", with_nan))).any())

    def test_concurrent_products_are_merged_and_keep_their_bits(self):
        service = self.start("--ranks", 2)
        self.loaded(service)
        x = self.vector(2, columns=32)
        expected = [service.multiply("bar", column).body for column in x]
        batches, wrong = [], []

        def client(number):
            connection = service.connection()
            for turn in range(40):
                which = (number * 7 + turn) % len(x)
                answer = service.multiply("bar", x[which], connection=connection)
                if answer.status != 200 or answer.body != expected[which]:
                    wrong.append(str(answer))
                batches.append(tuple(map(int, answer.headers["Shardmat-Batch"].split("/"))))
            connection.close()

        service.at_once_behind_ranks("bar", 16, client)
        self.assertEqual(wrong, [])
        self.assertEqual(len(batches), 640)
        self.assertGreater(max(columns for columns, _ in batches), 1)
        self.assertTrue(all(columns <= width for columns, width in batches))

    def test_client_commands(self):
        service = self.start()
        state = ["--state", service.state]
        self.assertIn("ready", self.succeed("client", "load", "bar", "bar.h5", "--type", "f32", *state).out)
        x = self.vector(3, "f32", columns=37).T
        write_vector(self.path("x.npy"), x)
        self.succeed("client", "multiply", "bar", "x.npy", "y.h5", "--rhs", 37, "--alpha", 2, *state)
        y = read_vector(self.path("y.h5"))
        self.assertEqual(y.dtype, np.float32)
        for j in (0, 31, 32, 36):
            self.assertEqual(y[:, j].tobytes(), service.multiply("bar", np.ascontiguousarray(x[:, j]), "?alpha=2").body)
        self.assertIn("975 × 975", self.succeed("client", "status", *state).out)
        schema = load_schema("service")
        self.assertEqual(faults(self.json_of("client", "status", *state), schema, schema), [])
        self.fail_with(INPUT, "client", "load", "bad", "../bar.h5", *state, says="leaves the library")
        self.assertRegex(self.succeed("client", "status", *state).out, r"\nbad +failed +f64 \.\./bar\.h5: the path leaves")
        self.assertIn(".npy, .mtx, .petsc", " ".join(self.succeed("client", "multiply", "--help").out.split()))
        self.assertEqual(faults(self.json_of("client", "status", *state), schema, schema), [])
        self.fail_with(INPUT, "client", "multiply", "none", "x.npy", "z.npy", *state, says="no matrix none")
        self.fail_with(INPUT, "client", "multiply", "bar", "x.npy", "z.npy", *state, says="x.npy")
        self.fail_with(USAGE, "client", "multiply", "bar", "x.npy", "z.pdf", *state, says="z.pdf")
        self.succeed("client", "unload", "bar", *state)
        self.assertEqual(service.get("/v1/matrices/bar").status, 404)
        self.assertEqual(service.terminate(), OK)
        self.fail_with(RESOURCES, "client", "status", *state, says=["no service listens", "shardmat serve"])


class Failures(ServiceTest):
    def test_a_killed_rank_is_answered_and_started_again(self):
        service = self.start("--ranks", 2)
        self.loaded(service)
        x = self.vector(4, columns=8)
        expected = [service.multiply("bar", column).body for column in x]
        stop, seen, wrong = threading.Event(), [], []

        def client(number):
            connection = service.connection()
            while not stop.is_set():
                answer = service.multiply("bar", x[number], connection=connection)
                good = answer.status == 200 and answer.body == expected[number]
                lost = answer.status == 503 and answer.json["code"] in ("rank_lost", "restarting") and "Retry-After" in answer.headers
                if not good and not lost:
                    wrong.append(str(answer))
                seen.append(answer.status)
            connection.close()

        threads = [threading.Thread(target=client, args=(number,)) for number in range(len(x))]
        for thread in threads:
            thread.start()
        try:
            for kill in range(2):
                products = seen.count(200)
                service.wait_for("products", lambda: seen.count(200) > products + len(x))
                os.kill(service.workers()[-1], signal.SIGKILL)
                service.wait_for("the restart", lambda: service.get("/v1/ranks").json["restarts"] == kill + 1)
                service.wait_until_ready()
            products = seen.count(200)
            service.wait_for("products", lambda: seen.count(200) > products + len(x))
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(wrong, [])
        self.assertIn(503, seen)
        self.assertEqual(service.terminate(), OK, service.report())
        self.assertEqual(service.processes(), [])

    def test_a_stopped_rank_is_lost(self):
        def attempt(timeout):
            service = self.start("--ranks", 2, "--timeout", timeout)
            self.addCleanup(service.close)
            self.loaded(service)
            x = self.vector(5)[0]
            expected = service.multiply("bar", x).body
            stopped = service.workers()[0]
            os.kill(stopped, signal.SIGSTOP)
            answer = service.multiply("bar", x)
            self.assert_problem(answer, 503, "rank_lost", "no sign of life")
            service.wait_until_ready()
            self.assertNotIn(stopped, service.workers())
            self.assertEqual(service.multiply("bar", x).body, expected)
            service.close()

        with_growing_deadline(attempt)

    def test_too_many_losses_end_the_service(self):
        service = self.start("--restarts", 0)
        os.kill(service.workers()[0], signal.SIGKILL)
        self.assertEqual(service.process.wait(LIMIT), RANK_LOST, service.report())
        self.assertEqual(service.processes(), [])

    def test_ranks_that_cannot_start_end_the_service(self):
        for launcher, code, says in (("no-such-launcher", RESOURCES, "no-such-launcher cannot be started"),
                                     ("false", RANK_LOST, "false ended")):
            with self.subTest(launcher=launcher):
                result = self.call("serve", "--library", self.library, "--state", self.path("state"), "--launcher", launcher)
                self.assertEqual(result.code, code, result)
                self.assertIn(says, result.err)

    def test_ranks_do_not_outlive_the_front_end(self):
        service = self.start("--ranks", 2)
        self.assertEqual(len(service.workers()), 2)
        service.process.kill()
        service.process.wait()
        service.wait_for("the end of the ranks", lambda: service.processes() == [])

    def test_a_matrix_whose_load_ends_ranks_twice_is_not_loaded_again(self):
        slow = self.library / "slow.h5"
        service = self.start("--ranks", 2, "--restarts", 100, "--restart-delay", 0)
        self.loaded(service)
        # A large matrix takes long enough to be interrupted.
        result = run([PROGRAM, "generate", "poisson27", "--n", 90, slow], self.directory)
        self.assertEqual(result.code, OK, result)
        self.addCleanup(slow.unlink)
        state = lambda name: service.get(f"/v1/matrices/{name}").json["state"]
        self.assertEqual(service.ask("POST", "/v1/matrices/slow/load", '{"source": "slow.h5"}').status, 202)
        losses = lambda: service.get("/v1/ranks").json["restarts"]
        seen = set(service.workers())
        os.kill(min(seen), signal.SIGKILL)
        service.wait_for("the restart", lambda: losses() == 1)
        self.assertEqual(state("slow"), "loading", service.report())  # one loss may have had another cause

        def lose_again():
            new = set(service.workers()) - seen
            if new and (state("bar"), state("slow")) == ("ready", "loading"):  # one after the other
                seen.update(new)
                os.kill(min(new), signal.SIGKILL)
            return state("slow") == "failed"

        service.wait_for("the failure", lose_again)
        service.wait_until_ready()
        self.assertEqual((state("bar"), state("slow")), ("ready", "failed"), service.report())
        self.assert_problem(service.multiply("slow", self.vector(1)), 409, "failed", "a rank was lost 2 times")
        self.assertEqual(service.load("slow", "slow.h5").status, 200)


class Life(ServiceTest):
    def test_sigterm_answers_all_accepted_requests(self):
        service = self.start("--ranks", 2)
        self.loaded(service)
        x = self.vector(6)[0]
        expected = service.multiply("bar", x).body
        wrong, good, end = [], [], threading.Event()

        def client():
            connection = service.connection()
            while True:
                try:
                    answer = service.multiply("bar", x, connection=connection)
                except OSError:  # the connection was closed before the request was accepted, or the socket is gone
                    break
                if answer.status != 200 or answer.body != expected:
                    wrong.append(str(answer))
                good.append(1)
                if answer.headers.get("Connection") == "close":
                    break
            connection.close()

        threads = [threading.Thread(target=client) for _ in range(8)]
        for thread in threads:
            thread.start()
        service.wait_for("products", lambda: len(good) > 50)
        self.assertEqual(service.terminate(), OK, service.report())
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        self.assertFalse(service.socket.exists())
        self.assertEqual(service.processes(), [])
        again = self.start("--ranks", 2)  # loads what was loaded
        self.assertEqual(again.multiply("bar", x).body, expected)

    def test_signals_to_the_whole_group_end_it_in_order(self):
        service = self.start("--ranks", 2)
        for pid in service.workers():
            os.kill(pid, signal.SIGTERM)
            os.kill(pid, signal.SIGINT)
        self.loaded(service)
        self.assertEqual(service.get("/v1/ranks").json["restarts"], 0)
        self.assertEqual(service.terminate(), OK)

    def test_a_second_server_is_refused(self):
        service = self.start()
        self.fail_with(RESOURCES, "serve", "--library", self.library, "--state", service.state, says=["uses it", "--state"])
        taken = self.call("serve", "--library", self.library, "--state", self.path("other"), "--unix", service.socket)
        self.assertEqual(taken.code, RESOURCES, taken)
        self.assertIn("another server listens there", taken.err)
        self.assertEqual(service.get("/v2/health/live").status, 200)

    def test_wrong_options_are_refused(self):
        at = ["--state", self.path("state")]
        self.fail_with(USAGE, "serve", *at, says="--library")
        self.fail_with(USAGE, "serve", "--library", self.library, *at, "--timeout", 1, says="from 2 on")
        self.fail_with(USAGE, "serve", "--library", self.library, *at, "--rank", 2, says="did you mean --ranks?")
        self.assertEqual(self.call("serve", "--library", self.path("none"), *at).code, INPUT)
        open_state = self.path("open")
        open_state.mkdir()
        open_state.chmod(0o755)
        result = self.call("serve", "--library", self.library, "--state", open_state)
        self.assertEqual(result.code, RESOURCES, result)
        self.assertIn("0700", result.err)

    def test_the_front_end_links_no_mpi(self):
        libraries = subprocess.run(["ldd", pathlib.Path(PROGRAM).parent / "shardmat-serve"], stdout=subprocess.PIPE, text=True).stdout
        self.assertIsNone(re.search("libmpi|libhdf5|libcuda|libnccl", libraries), libraries)


class Requests(ServiceTest):
    def test_wrong_requests_get_their_status(self):
        service = self.start("--arena", "64KiB")
        self.loaded(service)
        x = self.vector(7)[0]
        for query, status, code, says in (("?k=0", 400, "malformed", "k must be"), ("?k=x", 400, "malformed", "k must be"),
                                          ("?gamma=1", 400, "malformed", 'no parameter "gamma"'), ("?beta=1", 422, "wrong_length", "15600"),
                                          ("?alpha=nan", 400, "malformed", "finite"), ("?type=f32", 422, "wrong_type", "f64"),
                                          ("?k=2", 422, "wrong_length", "15600"), ("?k=1000", 422, "too_many_columns", "at most"),
                                          ("?k=1&k=1", 400, "malformed", "malformed")):
            with self.subTest(query=query):
                self.assert_problem(service.multiply("bar", x, query), status, code, says)
        self.assert_problem(service.multiply("bar", x[1:]), 422, "wrong_length", "7800")
        self.assert_problem(service.multiply("bar", self.vector(1, columns=8), "?k=8"), 413, "arena_too_small", "124800")
        self.assert_problem(service.multiply("none", x), 404, "no_matrix", "none")
        self.assert_problem(service.multiply(".x", x), 400, "bad_name")
        self.assert_problem(service.multiply("bar", x, Shardmat_Deadline_Ms="-1"), 400, "malformed", "Deadline")
        self.assert_problem(service.multiply("bar", x, Shardmat_Deadline_Ms="1e-6"), 504, "deadline", "passed")
        self.assertEqual(service.multiply("bar", x, Shardmat_Deadline_Ms="60000").status, 200)
        self.assert_problem(service.ask("POST", "/v1/matrices/bar/multiply", x.tobytes(), Content_Type="application/json"), 415, "content_type")
        self.assert_problem(service.get("/v1/matrices/bar/multiply"), 405, "method", "POST")
        self.assert_problem(service.ask("POST", "/v1/matrices"), 405, "method", "GET")
        self.assert_problem(service.get("/nothing"), 404, "no_path", "/nothing")
        self.assert_problem(service.ask("POST", "/v1/matrices/bar/load", '{"source": "bar.h5"}'), 409, "loaded", "unload")
        self.assert_problem(service.ask("POST", "/v1/matrices/new/load", "{}"), 400, "malformed", "source is missing")
        self.assert_problem(service.ask("POST", "/v1/matrices/new/load", b" " * 1_100_000), 413, "too_long")
        self.assertEqual(service.multiply("bar", x).status, 200)

    def test_only_the_library_is_read(self):
        service = self.start("--ranks", 2)
        (self.library / "out.h5").symlink_to("/etc/passwd")
        self.addCleanup((self.library / "out.h5").unlink)
        os.mkfifo(self.library / "fifo.h5")
        self.addCleanup((self.library / "fifo.h5").unlink)
        (self.library / "junk.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
        self.addCleanup((self.library / "junk.h5").unlink)
        for source, says in (("../x.h5", "leaves"), ("/etc/passwd", "leaves"), ("out.h5", "leaves"), ("fifo.h5", "regular file"),
                             ("none.h5", "no such file"), (".", "regular file"), ("junk.h5", "junk.h5"), ("poisson:n=3", "no such file"),
                             ("a\nshardmat-serve: ready", "no such file")):
            with self.subTest(source=source):
                self.assert_problem(service.load("m", source), 422, "bad_matrix", says)
        self.assertEqual(service.get("/v1/ranks").json["restarts"], 0)
        self.assertEqual(service.get("/v1/matrices/m").json["state"], "failed")
        self.assertNotIn("\nshardmat-serve: ready:", service.report())

    def test_malformed_http_gets_a_status_or_a_close(self):
        service = self.start()
        post = b"POST /v1/matrices/bar/multiply HTTP/1.1\r\nHost: a\r\n"
        for data, status in ((b"nonsense\r\n\r\n", 400), (post + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
                             (post + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 411),
                             (post + b"Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx", 415),
                             (post + b"Transfer-Encoding: xchunked\r\n\r\n", 411),
                             (post + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc", 400),
                             (post + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400),
                             (post + b"Content-Length: -1\r\n\r\n", 400), (post + b"Content-Length: 0x3\r\n\r\nabc", 400),
                             (post + b"Content-Length: 99999999999999999999\r\n\r\n", 400),
                             (post + b"X: " + b"a" * 20000 + b"\r\n\r\n", 431),
                             (post + b"".join(b"X%d: a\r\n" % i for i in range(200)) + b"\r\n", 431),
                             (post + b"Bad Name: a\r\n\r\n", 400), (post + b"X: a\x00b\r\n\r\n", 400),
                             (b"GET http:///v1/ranks HTTP/1.1\r\nHost: a\r\n\r\n", 400),
                             (b"GET /v1/%2e%2e%2fetc HTTP/1.1\r\nHost: a\r\n\r\n", 404)):
            with self.subTest(data=data[:90]):
                self.assertRegex(service.raw(data), rb"^HTTP/1.1 %d " % status)
        self.assertRegex(service.raw(b"GET /v2/health/live HTT"), rb"^HTTP/1.1 400 ")
        # Two requests at once get two answers; a body that is not wanted is not a request.
        ranks = b"GET /v1/ranks HTTP/1.1\r\nHost: a\r\n"
        self.assertEqual(service.raw(ranks + b"\r\n" + ranks + b"Connection: close\r\n\r\n").count(b"HTTP/1.1 200"), 2)
        hidden = ranks + b"\r\n"
        answer = service.raw(ranks + b"Content-Length: %d\r\n\r\n" % len(hidden) + hidden)
        self.assertEqual(answer.count(b"HTTP/1.1 "), 1, answer)
        answer = service.raw(b"POST /v1/matrices/bar/unload HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(hidden) + hidden)
        self.assertEqual(answer.count(b"HTTP/1.1 "), 1, answer)
        self.assertEqual(service.get("/v2/health/live").json, {"live": True})

    def test_head_gets_the_header_of_get_alone(self):
        service = self.start()
        self.loaded(service)
        for path, status in ((b"/v2/health/live", 200), (b"/v2/health/ready", 200), (b"/v2/models/bar/ready", 200),
                             (b"/v1/ranks", 200), (b"/nothing", 404), (b"/v1/matrices/bar/multiply", 405)):
            with self.subTest(path=path):
                rest = path + b" HTTP/1.1\r\nHost: a\r\n"
                answer = service.raw(b"HEAD " + rest + b"\r\nHEAD " + rest + b"Connection: close\r\n\r\n")
                self.assertRegex(answer, rb"(?s)^HTTP/1.1 %d .*?\r\n\r\nHTTP/1.1 %d .*?\r\n\r\n$" % (status, status))
                self.assertRegex(answer, rb"Content-Length: [1-9]")
        answer = service.raw(b"HEAD /v1/events HTTP/1.1\r\nHost: a\r\n\r\n")
        self.assertRegex(answer, rb"(?s)^HTTP/1.1 200 .*text/event-stream.*?\r\n\r\n$")

    def test_clients_that_leave_cost_nothing(self):
        service = self.start()
        self.loaded(service)
        x = self.vector(8)[0]
        head = b"POST /v1/matrices/bar/multiply HTTP/1.1\r\nHost: a\r\nContent-Length: 7800\r\n\r\n"
        for sent in (head, head + x.tobytes()[:100], head + x.tobytes()) * 20:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
                client.connect(str(service.socket))
                client.sendall(sent)
        service.wait_for("free memory", lambda: service.get("/v1/ranks").json["arena"]["used"] == 0)
        self.assertEqual(service.multiply("bar", x).status, 200)

    def test_continue_is_said_when_asked_for(self):
        service = self.start()
        self.loaded(service)
        x = self.vector(9)[0]
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(60)
            client.connect(str(service.socket))
            client.sendall(b"POST /v1/matrices/bar/multiply HTTP/1.1\r\nHost: a\r\nContent-Length: 7800\r\nExpect: 100-continue\r\n\r\n")
            self.assertEqual(client.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
            client.sendall(x.tobytes())
            self.assertIn(b"200 OK", client.recv(100))


if __name__ == "__main__":
    unittest.main()
