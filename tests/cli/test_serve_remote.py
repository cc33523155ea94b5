"""Unchanged command lines whose work a service does: --remote and SHARDMAT_REMOTE of solve and multiply."""

import contextlib
import hashlib
import http.server
import json
import re
import signal
import socket
import subprocess
import threading
import unittest

import numpy as np

from support import BACKEND, INPUT, LIMIT, OK, PROGRAM, RANK_LOST, RESOURCES, USAGE, environment, read_vector, write_vector
from test_serve_door import LISTEN, has_tls, make_certificate
from test_serve_solve import SolveTest

SAME = ("--reproducible", "--same-bits", "--overlap", "--no-measure")


def told_service(test, answer):
    """The URL of a service that answers as `answer(method, path, body)` says: (status, header, body); and what it was asked."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked.append((self.command, self.path.split("?")[0]))
            status, header, reply = answer(self.command, self.path, body)
            self.send_response(status)
            for field, value in {**header, "Content-Length": len(reply)}.items():
                self.send_header(field, str(value))
            self.end_headers()
            self.wfile.write(reply)

        do_GET = do_POST = do_PUT = do_DELETE = do

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # a client ends its connections as it likes
    threading.Thread(target=server.serve_forever, daemon=True).start()
    test.addCleanup(server.server_close)
    test.addCleanup(server.shutdown)
    return f"http://127.0.0.1:{server.server_port}", asked


def described(name, rows=4, cols=4, **more):
    """A matrix as a service describes it."""
    return {"name": name, "source": "grid.h5", "state": "ready", "type": "f64", "rows": rows, "cols": cols, "nnz": 4, "transposable": True,
            "widths": [{"columns": 1}], "ranks": [{}], **more}


class Remote(SolveTest):
    def both(self, service, command, source, *options, output, ranks=2, remote=(), code=OK, **more):
        """The result of ranks here and of a service, which must have the same bits."""
        here = self.call(command, self.library / source, *options, *SAME, "--backend", BACKEND, "--output", f"here{output}", "--force", ranks=ranks)
        self.assertEqual(here.code, code, here)
        there = self.call(command, source, *options, *SAME, "--remote", service.state, *remote, "--output", f"there{output}", "--force", **more)
        self.assertEqual(there.code, code, there)
        what = "x" if command == "solve" else "y"
        ours, theirs = read_vector(self.path(f"here{output}"), what), read_vector(self.path(f"there{output}"), what)
        self.assertEqual((ours.dtype, ours.tobytes()), (theirs.dtype, theirs.tobytes()))
        return there

    def test_solves_have_the_bits_of_ranks_here(self):
        for ranks in (1, 2):
            service = self.start("--ranks", ranks, state=f"state{ranks}")
            for type in ("f64", "f32"):
                write_vector(self.path("b.npy"), self.b(ranks, type, 3).T)
                write_vector(self.path("x0.h5"), self.b(5, type)[0])
                for options in (["--solver", "cg", "--preconditioner", "jacobi"], ["--b", "random", "--seed", 7, "--rtol", 1e-3],
                                ["--b", "b.npy", "--rhs", 3, "--preconditioner", "none", "--max-iterations", 4000, "--divergence-tolerance", 1e9],
                                ["--initial-guess", "x0.h5", "--solver", "gmres", "--restart", 20, "--preconditioner", "block_jacobi"]):
                    with self.subTest(ranks=ranks, type=type, options=options):
                        result = self.both(service, "solve", "grid.h5", "--type", type, *options, output=".h5", ranks=ranks)
                        self.assertIn("3,600 × 3,600, 17,760 nonzeros, " + type, result.out)
                        self.assertIn("iteration", result.out)
            self.assertEqual(service.get("/v1/jobs").json["jobs"], [])
            self.assertEqual(service.get("/v1/vectors").json["vectors"], [])
            self.assertEqual(len(service.get("/v1/matrices").json["matrices"]), 2)  # each was loaded once
            self.assertEqual(service.terminate(), OK, service.report())

    def test_products_have_the_bits_of_ranks_here(self):
        service = self.start("--ranks", 2)
        write_vector(self.path("x.npy"), self.vector(1, columns=40).T)
        write_vector(self.path("y0.npy"), self.vector(2)[0])
        for source, options in (("bar.h5", []), ("bar.h5", ["--x", "ones", "--alpha", -2]), ("elasticity_bar.mtx.gz", ["--type", "f32"]),
                                ("bar.h5", ["--x", "x.npy", "--rhs", 40]), ("bar.h5", ["--beta", 0.3, "--y0", "y0.npy"]),
                                ("bar.h5", ["--kernel", "csr_host", "--sort", "none", "--exchange", "halo"])):
            with self.subTest(source=source, options=options):
                result = self.both(service, "multiply", source, "--iterations", 3, *options, output=".npy")
                self.assertIn("requests, there and back", result.out)
        self.assertRegex(self.succeed("multiply", "bar.h5", "--remote", service.state).out, "1 request, there and back")

    def test_a_transpose_where_plain_loads_drop_the_rows(self):
        loaded = []  # as services on GPUs do it

        def answer(method, path, body):
            if path == "/v1/matrices":
                return 200, {}, json.dumps({"matrices": loaded}).encode()
            if path.split("?")[0].endswith("/load"):
                wanted = json.loads(body)
                loaded.append(described(path.split("/")[3], cols=cols, solvable=wanted["solvable"], transposable=wanted["solvable"]))
                return 200, {}, json.dumps(loaded[-1]).encode()
            return 200, {}, np.ones(cols).tobytes()

        cols = 4
        url, asked = told_service(self, answer)
        self.succeed("multiply", "grid.h5", "--transpose", "--output", "y.npy", "--remote", url)
        self.assertEqual([matrix["solvable"] for matrix in loaded], [False, True])
        self.assertEqual(asked[-1], ("POST", f"/v1/matrices/{loaded[1]['name']}/multiply"))
        del asked[:]
        self.succeed("multiply", "grid.h5", "--transpose", "--remote", url)  # it is loaded
        self.assertEqual(asked, [("GET", "/v1/matrices"), ("POST", f"/v1/matrices/{loaded[1]['name']}/multiply")])
        self.fail_with(INPUT, "multiply", loaded[0]["name"], "--transpose", "--remote", url, says=["without the rows that products with its transpose need", "--solvable"])
        del loaded[:]
        cols = 7
        self.fail_with(INPUT, "multiply", "grid.h5", "--transpose", "--remote", url,
                       says=["cannot multiply with the transpose of grid.h5, which is 4 × 7", "square matrices alone", "--remote here"])
        self.assertEqual(len(loaded), 1)

    def test_what_a_service_refuses_to_begin_is_sent_again(self):
        def answer(method, path, body):
            if method == "GET":
                return 200, {}, json.dumps({"matrices": [described("m")]}).encode()
            if not refusals:
                return 200, {}, np.ones(4).tobytes()
            status, code, wait = refusals.pop(0)
            return status, {"Retry-After": 1}, json.dumps({"error": f"it is {code}", "code": code, "retry_after_ms": wait}).encode()

        url, asked = told_service(self, answer)
        refusals = [(503, "starting", 10), (503, "restarting", 20), (429, "busy", 10), (429, "arena_full", 10)]
        self.succeed("multiply", "m", "--remote", url)
        self.assertEqual(asked, [("GET", "/v1/matrices")] + 5 * [("POST", "/v1/matrices/m/multiply")])
        for status, code, wait, exit_code in ((503, "rank_lost", 10, RANK_LOST), (503, "draining", 10, RANK_LOST), (503, "restarting", 10_000_000, RANK_LOST),
                                              (429, "busy", 10_000_000, RESOURCES)):
            with self.subTest(code=code):
                del asked[:]
                refusals = [(status, code, wait)]
                self.fail_with(exit_code, "multiply", "m", "--remote", url, says=f"it is {code}")
                self.assertEqual(len(asked), 2)
        refusals = 1000 * [(429, "busy", 50)]
        self.fail_with(RESOURCES, "multiply", "m", "--remote", url, "--remote-timeout", 0.3, says="it is busy")  # the limit

    def test_a_solve_that_does_not_converge(self):
        service = self.start("--ranks", 2)
        result = self.both(service, "solve", "grid.h5", "--solver", "cg", "--preconditioner", "none", "--max-iterations", 5, "--no-advice", output=".npy", code=7)
        self.assertIn("shardmat: the solver did not converge: ", result.err)
        self.assertEqual(service.get("/v1/jobs").json["jobs"], [])

    def test_which_matrix_it_is(self):
        service = self.start("--ranks", 1)
        self.loaded(service)
        self.loaded(service, "narrow", "bar.h5", type="f32")
        remote = ["--remote", service.state]
        self.succeed("multiply", "bar", *remote)
        self.succeed("multiply", "bar.h5", *remote)  # the matrix that is loaded of this file
        names = lambda: sorted(one["name"] for one in service.get("/v1/matrices").json["matrices"])
        self.assertEqual(names(), ["bar", "narrow"])
        self.assertIn("f32", self.succeed("multiply", "narrow", *remote).out)  # as the service has it
        self.fail_with(INPUT, "multiply", "narrow", "--type", "f64", *remote, says=["narrow is of type f32", "--type"])
        self.fail_with(INPUT, "solve", "bar", *remote, says=["without what solvers need", "client load bar bar.h5 --solvable"])
        self.fail_with(USAGE, "multiply", "bar", "--kernel", "csr_host", *remote, says=["with its own kernel", "--kernel"])
        self.succeed("multiply", "bar.h5", "--kernel", "csr_host", *remote)
        self.assertEqual(len(names()), 3)
        self.succeed("solve", "bar.h5", "--solver", "cg", *remote)
        self.assertEqual(len(names()), 4)
        self.fail_with(INPUT, "multiply", "none.h5", *remote, says="none.h5")
        self.fail_with(INPUT, "solve", "bar.h5", "--b", "none.npy", *remote, says="none.npy")
        write_vector(self.path("short.npy"), np.ones(3))
        self.fail_with(INPUT, "multiply", "bar.h5", "--x", "short.npy", *remote, says="short.npy: x has 3 entries")

    def test_a_file_here_is_sent_once_until_it_changes(self):
        service = self.start("--ranks", 1, "--upload-limit", "3MB")
        remote = ["--remote", service.state, "--x", "ones", "--output", "y.npy", "--force"]
        y = {}
        for turn, data in enumerate(("2\n1 1 3\n2 2 5\n", "2\n1 1 7\n2 2 9\n", "2\n1 1 3\n2 2 5\n")):  # there and back
            self.write("local file.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 " + data)
            for _ in range(2):
                self.succeed("multiply", "local file.mtx", *remote)
                y[turn] = read_vector(self.path("y.npy")).tolist()
        self.assertEqual(list(y.values()), [[3, 5], [7, 9], [3, 5]])
        sent = [file["source"] for file in service.get("/v1/library").json["files"] if file["source"].endswith("-local-file.mtx")]
        self.assertEqual(len(sent), 2)
        self.write("bar.h5", (self.library / "bar.h5").read_bytes())  # as the library has it: nothing is sent
        self.succeed("multiply", "bar.h5", "--remote", service.state)
        self.assertIn("bar.h5", [one["source"] for one in service.get("/v1/matrices").json["matrices"]])
        for name in sent:
            for path in self.library.glob(name + "*"):
                path.unlink()

    def test_a_file_of_the_library_has_the_name_but_other_bytes(self):
        service = self.start("--ranks", 1, "--upload-limit", "3MB")
        remote = ["--remote", service.state, "--x", "ones", "--output", "y.npy", "--force"]
        head = "%%MatrixMarket matrix coordinate real general\n2 2 2\n"
        for data, others, expected in (("1 1 3\n2 2 5\n", (16,), [3, 5]), ("1 1 7\n2 2 9\n", (16, 32), None)):
            digits = hashlib.sha256((head + data).encode()).hexdigest()
            names = {count: f"{digits[:count]}-local.mtx" for count in (16, 32)}
            for count in others:
                (self.library / names[count]).write_text(head + "1 1 1\n2 2 1\n")
            self.write("local.mtx", head + data)
            if expected is None:
                self.fail_with(INPUT, "multiply", "local.mtx", *remote, says=["local.mtx cannot be sent", names[16], f"client delete-file {names[32]}"])
            else:
                for _ in range(2):
                    self.succeed("multiply", "local.mtx", *remote)
                    self.assertEqual(read_vector(self.path("y.npy")).tolist(), expected)
                self.assertEqual((self.library / names[32]).read_text(), head + data)
            for path in [path for name in names.values() for path in self.library.glob(name + "*")]:
                path.unlink()

    def test_a_service_that_ends_the_connection_while_a_file_is_hashed(self):
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(str(self.path("proxy.sock")))
        listener.listen()
        asked, answers = [], [b'{"matrices": []}', b'{"sha256": "another"}', b'{"sha256": "another"}', b'{"error": "none today"}']

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, contextlib.suppress(OSError):
                        while data := connection.recv(65536):
                            head, _, body = data.partition(b"\r\n\r\n")
                            asked.append(head.split(b" ")[0])
                            left = int(re.search(rb"Content-Length: (\d+)", head)[1]) - len(body)
                            while left > 0:
                                left -= len(connection.recv(65536))
                            answer, status = answers.pop(0), b"200 OK" if answers else b"403 Forbidden"
                            connection.sendall(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(answer), answer))
                            if len(asked) == 1:
                                break

        threading.Thread(target=serve, daemon=True).start()
        with open(self.path("large.h5"), "wb") as file:
            file.truncate(64 << 20)
        self.fail_with(INPUT, "multiply", "large.h5", "--remote", self.path("proxy.sock"), says="none today")
        self.assertEqual(asked, [b"GET", b"GET", b"GET", b"PUT"])

    def test_a_file_here_that_the_service_does_not_take(self):
        service = self.start("--ranks", 1)
        self.write("bar.h5", "1")
        self.fail_with(INPUT, "multiply", "bar.h5", "--remote", service.state,
                       says=["bar.h5 is a file here, which the service does not have and cannot get", "--upload-limit", "library:bar.h5"])
        self.succeed("multiply", "library:bar.h5", "--remote", service.state)

    def test_what_a_service_cannot_do_is_refused(self):
        remote = ["--remote", self.path("no/such")]
        for command, options in (("solve", ["--plot", "x.svg"]), ("solve", ["--json"]), ("solve", ["--monitor"]), ("solve", ["--dry-run"]),
                                 ("solve", ["--coordinates", "c.npy"]), ("solve", ["--policy", "a=1"]), ("multiply", ["--verify"]), ("multiply", ["--mode", "power"]),
                                 ("multiply", ["--storage", "symmetric"]), ("multiply", ["--backend", "host"]), ("solve", ["--node-block-size", 3])):
            with self.subTest(command=command, options=options):
                name = options[0]
                self.fail_with(USAGE, command, "bar.h5", *options, *remote, says=[f"a service cannot do what {name} asks for", "--remote here"])
        self.fail_with(USAGE, "multiply", "a.h5", "b.h5", *remote, says="one matrix at a time")
        result = self.call("solve", "bar.h5", *remote, ranks=2)
        self.assertIn("start shardmat solve without mpirun", result.err)
        self.fail_with(RESOURCES, "solve", "bar.h5", *remote, says="no service listens")
        self.succeed("multiply", self.library / "bar.h5", "--remote", "here", "--verify", env={"SHARDMAT_REMOTE": "http://127.0.0.1:1"})

    def test_over_http_and_the_environment(self):
        service = self.start("--ranks", 2, *LISTEN)
        url = f"http://127.0.0.1:{service.port()}"
        self.fail_with(INPUT, "multiply", "bar.h5", "--remote", url, says="a token is needed")
        names = {"SHARDMAT_REMOTE": url, "SHARDMAT_REMOTE_TOKEN_FILE": str(service.state / "token")}
        self.succeed("multiply", "bar.h5", "--x", "ones", "--output", "y.npy", env=names)
        self.assertEqual(read_vector(self.path("y.npy")).tobytes(), service.multiply(service.get("/v1/matrices").json["matrices"][0]["name"],
                                                                                     np.ones(975)).body)
        self.assertIn("cg", self.succeed("solve", "bar.h5", "--solver", "cg", env=names).out)
        self.assertIn("SHARDMAT_REMOTE ", self.succeed("--help").out)

    @unittest.skipUnless(has_tls(), "the program was built without OpenSSL")
    def test_over_tls(self):
        make_certificate(self.directory, "one")
        service = self.start(*LISTEN, "--tls-certificate", self.path("one.pem"), "--tls-key", self.path("one.key"))
        remote = ["--remote", f"https://localhost:{service.port('https')}", "--remote-token-file", service.state / "token"]
        self.assertIn("bar.h5", self.succeed("multiply", "bar.h5", *remote, "--remote-ca", "one.pem").out)
        self.fail_with(RESOURCES, "multiply", "bar.h5", *remote, says="does not prove who it is")

    def test_a_token_that_may_not_load(self):
        import hashlib
        import json

        tokens = {"tokens": [{"name": "lab", "sha256": hashlib.sha256(b"secret").hexdigest(), "scopes": ["read", "multiply"]}]}
        self.path("tokens.json").write_text(json.dumps(tokens))
        self.write("token", "secret\n")
        service = self.start("--ranks", 1, *LISTEN, "--tokens", self.path("tokens.json"))
        remote = ["--remote", f"http://127.0.0.1:{service.port()}", "--remote-token-file", "token"]
        self.fail_with(INPUT, "multiply", "bar.h5", *remote, says=["the service has no bar.h5", "this token may load none"])
        self.loaded(service)
        self.succeed("multiply", "bar.h5", *remote)

    def test_the_job_ends_with_the_command(self):
        service = self.start("--ranks", 1)
        command = subprocess.Popen([PROGRAM, "solve", "slow.h5", "--remote", service.state, "--solver", "gmres", "--preconditioner", "none",
                                    "--restart", "1", "--rtol", "1e-300", "--max-iterations", "1000000000"], env=environment(), cwd=self.directory)
        self.addCleanup(command.kill)
        service.wait_for("a job", lambda: service.get("/v1/jobs").json["jobs"])
        command.send_signal(signal.SIGINT)
        self.assertNotEqual(command.wait(LIMIT), 0)
        self.assertEqual(self.ended(service, service.get("/v1/jobs").json["jobs"][0]["id"])["state"], "cancelled")


if __name__ == "__main__":
    unittest.main()
