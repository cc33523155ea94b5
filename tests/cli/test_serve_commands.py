"""Commands for who runs a service and who waits for it: token, and wait, submit, job, pin and metrics of the client."""

import json
import os
import signal
import subprocess
import unittest

import numpy as np
import scipy.sparse as sp

from service import at_once
from support import INPUT, LIMIT, PROGRAM, RANK_LOST, RESOURCES, USAGE, environment, read_vector, write_vector
from test_serve import NAMES
from test_serve_door import LISTEN
from test_serve_solve import SolveTest


class Tokens(SolveTest):
    FILE = ("--tokens", "tokens.json")

    def add(self, *options):
        return self.succeed("token", "add", *options, *self.FILE).out.strip()

    def entries(self):
        return json.loads(self.path("tokens.json").read_text())["tokens"]

    def test_a_service_takes_them(self):
        lab = self.add("lab", "--scope", "read,multiply", "--matrices", "b*", "--weight", 2, "--memory", "4GB", "--expires", "30d")
        boss = self.add("boss", "--scope", "read", "--scope", "admin", "--priority", "high", "--requests-per-second", 5.5)
        self.assertRegex(lab, "^[0-9a-f]{64}$")
        self.assertNotIn(lab, self.path("tokens.json").read_text())
        self.assertEqual(self.path("tokens.json").stat().st_mode & 0o777, 0o600)
        first, second = self.entries()
        self.assertEqual((first["name"], first["scopes"], first["matrices"], first["weight"], first["memory_bytes"]),
                         ("lab", ["read", "multiply"], ["b*"], 2, 4_000_000_000))
        self.assertEqual((second["scopes"], second["priority"], second["requests_per_second"]), (["read", "admin"], "high", 5.5))
        listed = self.succeed("token", "list", *self.FILE).out
        self.assertRegex(listed, r"(?m)^lab +read,multiply, matrices b\*, weight 2, memory [\d.]+ GB, until \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertRegex(listed, r"(?m)^boss +read,admin, priority high$")
        service = self.start("--ranks", 1, *LISTEN, *("--tokens", self.path("tokens.json")))
        url = ["--url", f"http://127.0.0.1:{service.port()}"]
        for name, token in (("lab", lab), ("boss", boss), ("end", "x" * 64)):
            self.write(f"{name}.token", token + "\n")
        self.succeed("client", "load", "bar", "bar.h5", *url, "--token-file", "boss.token")
        self.fail_with(INPUT, "client", "unload", "bar", *url, "--token-file", "lab.token", says="no scope admin")
        write_vector(self.path("x.npy"), self.vector(1)[0])
        self.succeed("client", "multiply", "bar", "x.npy", "y.npy", *url, "--token-file", "lab.token")
        self.succeed("token", "remove", "lab", *self.FILE)
        service.hang_up("read again")
        self.fail_with(INPUT, "client", "status", *url, "--token-file", "lab.token", says="no such token")
        self.assertEqual([entry["name"] for entry in self.entries()], ["boss"])

    def test_an_end(self):
        token = self.add("short", "--scope", "read", "--expires", "2s")
        self.write("short.token", token)
        service = self.start("--ranks", 1, *LISTEN, "--tokens", self.path("tokens.json"))
        at = ["--url", f"http://127.0.0.1:{service.port()}", "--token-file", "short.token"]
        service.wait_for("the end", lambda: self.call("client", "status", *at).code == INPUT)
        self.fail_with(INPUT, "client", "status", *at, says="the token short has expired")
        self.assertIn("expired at", self.succeed("token", "list", *self.FILE).out)
        self.add("later", "--scope", "read", "--expires", "2999-12-31")
        self.assertEqual(self.entries()[1]["expires"], "2999-12-31T00:00:00Z")
        for wrong, says in (("30", "is no end"), ("d", "is no end"), ("2999-02-30", "is no end"), ("2001-01-01", "is over"), ("0d", "is over")):
            self.fail_with(USAGE, "token", "add", "x", "--scope", "read", "--expires", wrong, *self.FILE, says=[says, "--expires"])

    def test_mistakes_change_nothing(self):
        self.add("lab", "--scope", "read")
        before = self.path("tokens.json").read_text()
        for code, options, says in ((USAGE, ["add", "lab", "--scope", "read"], "has a token lab already"), (USAGE, ["add", "b", "--scope", "root"], "root"),
                                    (USAGE, ["add", "b"], "--scope"), (INPUT, ["add", "owner", "--scope", "read"], "choose another name"),
                                    (INPUT, ["remove", "none"], "has no token none")):
            self.fail_with(code, "token", *options, *self.FILE, says=says)
            self.assertEqual(self.path("tokens.json").read_text(), before)
        self.fail_with(USAGE, "token", "list", says="--tokens")
        self.write("wrong.json", '{"tokens": [1]}')
        self.fail_with(INPUT, "token", "add", "b", "--scope", "read", "--tokens", "wrong.json", says=["wrong.json", "token 1 must be an object"])
        self.fail_with(RESOURCES, "token", "add", "b", "--scope", "read", "--tokens", "no/such.json", says="no/such.json")

    def test_several_at_once(self):
        at_once(8, lambda number: self.call("token", "add", f"t{number}", "--scope", "read", *self.FILE))
        self.assertEqual(sorted(entry["name"] for entry in self.entries()), [f"t{number}" for number in range(8)])


class Client(SolveTest):
    ENDLESS = ("--solver", "gmres", "--preconditioner", "none", "--settings", "restart=1 rtol=1e-300 max_iterations=1000000000")

    def test_jobs(self):
        service = self.start("--ranks", 2)
        at = ["--state", service.state]
        for type in ("f64", "f32"):
            self.solvable(service, "grid", type=type)
            b = self.b(1, type, 2)
            write_vector(self.path("b.npy"), b.T)
            id = self.succeed("client", "submit", "grid", "b.npy", "--rhs", 2, "--solver", "cg", "--preconditioner", "jacobi", *at).out.strip()
            self.succeed("client", "wait", "--job", id, *at)
            shown = self.succeed("client", "job", id, "x.npy", *at).out
            self.assertRegex(shown, rf"(?m)^{id} +done +solve grid, iteration \d+, residual ")
            self.assertRegex(shown, r"(?m)^ +1 \d\.\d{3}e")
            self.assertEqual(np.ascontiguousarray(read_vector(self.path("x.npy")).T).tobytes(), service.get(f"/v1/jobs/{id}/x").body)
            self.succeed("client", "cancel", id, *at)
        self.solvable(service, "slow", "slow.h5")
        write_vector(self.path("b.npy"), self.b(1)[0])
        id = self.succeed("client", "submit", "slow", "b.npy", *self.ENDLESS, *at).out.strip()
        self.fail_with(RANK_LOST, "client", "wait", "--job", id, "--at-most", 0.2, *at, says=[f"{id} is still", "after 0.2 s", "--at-most"])
        waits = subprocess.Popen([PROGRAM, "client", "wait", "--job", id, *map(str, at)], env=environment(), stderr=subprocess.PIPE, text=True)
        self.addCleanup(waits.kill)
        self.succeed("client", "cancel", id, *at)
        self.assertIn(f"{id} is cancelled", waits.communicate(timeout=LIMIT)[1])
        self.assertEqual(waits.returncode, INPUT)
        self.fail_with(INPUT, "client", "job", id, "z.npy", *at, says="has no x")
        self.fail_with(INPUT, "client", "wait", "--job", "job-1", *at, says="no job")

    def test_a_matrix_of_arrays(self):
        service = self.start("--ranks", 2, "--upload-limit", "1GB")
        at = ["--state", service.state]
        a = self.grid.copy()
        a.indices = a.indices.astype(np.int32)
        sp.save_npz(self.path("A.npz"), a)
        wide = sp.random(30, 50, 0.2, "csr", random_state=1)
        for name, part in (("indptr", wide.indptr), ("indices", wide.indices), ("data", wide.data), ("short", wide.data[1:])):
            np.save(self.path(f"{name}.npy"), part)
        out = self.succeed("client", "load-arrays", "grid", "A.npz", "--solvable", *at).out
        self.assertIn(f"3,600 × 3,600, {a.nnz:,} nonzeros", out)
        self.assertTrue(service.get("/v1/matrices/grid").json["solvable"])
        files = ["indptr.npy", "indices.npy", "data.npy"]
        for type, close in (("f64", 1e-12), ("f32", 1e-5)):
            self.succeed("client", "load-arrays", "wide", *files, "--cols", 50, "--type", type, *at)
            x = np.random.default_rng(1).uniform(-1, 1, 50)
            y = np.frombuffer(service.multiply("wide", x.astype(NAMES[type])).body, NAMES[type])
            np.testing.assert_allclose(y, wide @ x, rtol=0, atol=close)
        y = np.frombuffer(service.multiply("grid", self.b(1)[0]).body)
        np.testing.assert_allclose(y, a @ self.b(1)[0], rtol=0, atol=1e-12)
        self.fail_with(USAGE, "client", "load-arrays", "m", *files[:2], *at, says="2 were given")
        self.fail_with(USAGE, "client", "load-arrays", "m", "A.npz", "--cols", 3, *at, says="--cols")
        self.fail_with(INPUT, "client", "load-arrays", "m", *files[:2], "short.npy", *at, says=["short.npy", "the last offset"])
        self.fail_with(INPUT, "client", "load-arrays", "m", *files, *at, says="column")  # 30 columns
        self.fail_with(INPUT, "client", "load-arrays", "m", "data.npy", *files[1:], *at, says="data.npy")
        self.assertEqual({one["name"] for one in service.get("/v1/matrices").json["matrices"] if one["state"] == "ready"}, {"grid", "wide"})

    def test_first_guesses_and_vectors_of_the_service(self):
        service = self.start("--ranks", 2)
        at = ["--state", service.state]
        self.solvable(service)
        b = self.b(2, columns=2)
        write_vector(self.path("b.npy"), b.T)
        solve = ["client", "solve", "grid", "--rhs", 2, "--solver", "cg", "--preconditioner", "jacobi", *at]
        self.succeed(*solve, "b.npy", "x.npy")
        self.assertIn("0 iterations", self.succeed(*solve, "b.npy", "again.npy", "--x0", "x.npy").out)
        np.testing.assert_array_equal(read_vector(self.path("again.npy")), read_vector(self.path("x.npy")))
        self.assertEqual(service.get("/v1/vectors").json["vectors"], [])
        submit = ["client", "submit", "grid", "--rhs", 2, "--solver", "cg", "--preconditioner", "jacobi", *at]
        first = self.succeed(*submit, "b.npy").out.strip()
        self.succeed("client", "wait", "--job", first, *at)
        for guess in (first, self.job(service, first)["x"], "x.npy"):
            id = self.succeed(*submit, "b.npy", "--x0", guess).out.strip()
            self.assertEqual((self.ended(service, id)["state"], self.job(service, id)["iteration"]), ("done", 0))
        self.fail_with(INPUT, *solve, "b.npy", "z.npy", "--x0", "job-1", says="no job")
        write_vector(self.path("short.npy"), b[:, :5].T)
        self.fail_with(INPUT, *solve, "b.npy", "z.npy", "--x0", "short.npy", says=["short.npy: x0 has 5 rows", "3600"])

        x, y = (self.succeed("client", "make-vector", "grid", "--columns", 2, *at).out.strip() for _ in range(2))
        self.succeed("client", "put-vector", x, "b.npy", *at)
        wanted = self.grid @ b.T
        multiply = ["client", "multiply", "grid", *at]
        self.succeed(*multiply, x, "y.npy")
        np.testing.assert_allclose(read_vector(self.path("y.npy")), wanted, rtol=0, atol=1e-12)
        self.succeed(*multiply, "b.npy", y)
        self.succeed(*multiply, x, y, "--alpha", 2, "--beta", -1)
        self.succeed("client", "get-vector", y, "of_y.npy", *at)
        np.testing.assert_allclose(read_vector(self.path("of_y.npy")), wanted, rtol=0, atol=1e-11)
        self.succeed(*multiply, x, "y.npy", "--beta", 3, "--y0", "b.npy")
        np.testing.assert_allclose(read_vector(self.path("y.npy")), wanted + 3 * b.T, rtol=0, atol=1e-11)
        self.succeed(*solve, x, "of_vector.npy")
        np.testing.assert_array_equal(read_vector(self.path("of_vector.npy")), read_vector(self.path("x.npy")))
        self.fail_with(USAGE, *multiply, x, y, "--y0", "b.npy", "--beta", 2, says="--y0")
        self.fail_with(USAGE, *multiply, x, "y.npy", "--rhs", 2, says="--rhs")
        self.fail_with(INPUT, *multiply, "vec-1", "y.npy", says="no vector vec-1")

    def test_waits_for_a_service_and_a_matrix(self):
        at = ["--state", self.path("state")]
        self.fail_with(RESOURCES, "client", "wait", *at, says="no service listens")
        self.fail_with(RESOURCES, "client", "wait", "--at-most", 0.2, *at, says="no service listens")
        waits = subprocess.Popen([PROGRAM, "client", "wait", "--at-most", str(LIMIT), *map(str, at)], env=environment())
        self.addCleanup(waits.kill)
        service = self.start("--ranks", 1)
        self.assertEqual(waits.wait(LIMIT), 0)
        self.assertEqual(service.ask("POST", "/v1/matrices/bar/load", '{"source": "bar.h5"}').status, 202)
        self.succeed("client", "wait", "--matrix", "bar", *at)
        self.assertEqual(service.get("/v1/matrices/bar").json["state"], "ready")
        service.ask("POST", "/v1/matrices/bad/load?wait=1", '{"source": "none.h5"}')
        self.fail_with(INPUT, "client", "wait", "--matrix", "bad", *at, says="bad is failed: ")
        self.fail_with(INPUT, "client", "wait", "--matrix", "none", *at, says="no matrix none")
        self.fail_with(USAGE, "client", "wait", "--matrix", "a", "--job", "b", *at, says="--job")
        os.kill(service.workers()[0], signal.SIGKILL)
        self.succeed("client", "wait", "--matrix", "bar", *at)

    def test_pins_and_figures(self):
        service = self.start("--ranks", 1)
        at = ["--state", service.state]
        self.loaded(service)
        for options, pinned in (([], True), (["--off"], False)):
            self.succeed("client", "pin", "bar", *options, *at)
            self.assertEqual(service.get("/v1/matrices/bar").json["pinned"], pinned)
        self.fail_with(INPUT, "client", "pin", "none", *at, says="no matrix none")
        self.assertRegex(self.succeed("client", "metrics", *at).out, r"(?m)^shardmat_requests_total\{")


if __name__ == "__main__":
    unittest.main()
