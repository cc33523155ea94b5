"""Jobs that solve: POST /v1/matrices/NAME/solve, what becomes of a job, and what others get meanwhile."""

import json
import os
import re
import signal
import subprocess
import unittest

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from service import read_all
from support import BACKEND, INPUT, LIMIT, OK, PROGRAM, USAGE, environment, read_vector, write_binsparse, write_vector
from test_serve import NAMES, ServiceTest


def poisson(n):
    """The 5-point Laplacian of an n × n grid: it takes cg about 3 n iterations."""
    line = sp.diags([-1, 2, -1], [-1, 0, 1], (n, n))
    return (sp.kron(line, sp.identity(n)) + sp.kron(sp.identity(n), line)).tocsr()


class SolveTest(ServiceTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.grid = poisson(60)
        write_binsparse(cls.library / "grid.h5", cls.grid)
        # gmres with one vector makes each residual smaller by 2e-4 of it.
        slow = sp.kron(sp.identity(cls.grid.shape[0] // 2), np.array([[0.02, 1], [-1, 0.02]])).tocsr()
        write_binsparse(cls.library / "slow.h5", slow)

    def solvable(self, service, name="grid", source="grid.h5", **more):
        return self.loaded(service, name, source, solvable=True, **more)

    def b(self, seed, type="f64", columns=1):
        return np.random.default_rng(seed).uniform(-1, 1, (columns, self.grid.shape[0])).astype(NAMES[type])

    def solve(self, service, b, query="", name="grid", status=None):
        answer = service.ask("POST", f"/v1/matrices/{name}/solve" + ("?" + query if query else ""), b if isinstance(b, bytes) else b.tobytes(),
                             Content_Type="application/octet-stream")
        if status is not None:
            self.assertEqual(answer.status, status, answer)
        return answer

    def job(self, service, id):
        answer = service.get(f"/v1/jobs/{id}")
        self.assertEqual(answer.status, 200, answer)
        return answer.json

    def ended(self, service, id):
        service.wait_for("the end of a job", lambda: self.job(service, id)["state"] not in ("queued", "running"))
        return self.job(service, id)

    def running(self, service, id, iterations=1):
        service.wait_for("iterations", lambda: self.job(service, id)["iteration"] >= iterations)

    def begun_again(self, service, id):
        service.wait_for("a restart", lambda: self.job(service, id)["restarts"] == 1)
        service.wait_for("its iterations", lambda: (job := self.job(service, id))["state"] == "running" and job["history"])

    def of_command(self, b, ranks, type, *options, source="grid.h5"):
        """x and the report of `shardmat solve`."""
        write_vector(self.path("b.npy"), b)
        self.succeed("solve", self.library / source, "--b", "b.npy", "--output", "x.npy", "--json", "solve.json", "--force", "--type", type,
                     "--backend", BACKEND, "--reproducible", "--same-bits", "--overlap", "--no-measure", *options, ranks=ranks)
        return read_vector(self.path("x.npy")), json.loads(self.path("solve.json").read_text())

    def endless(self, service, query="", name="slow"):
        """The id of a job that does not end by itself."""
        answer = self.solve(service, self.b(1)[0], f"method=gmres&preconditioner=none&restart=1&rtol=1e-300&max_iterations=1000000000{query}", name,
                            202)
        self.assertEqual(answer.headers["Location"], f"/v1/jobs/{answer.json['id']}")
        return answer.json["id"]


class Answers(SolveTest):
    def test_x_has_the_bits_of_the_command(self):
        for ranks in (1, 2, 3) if BACKEND == "host" else (1, 2):
            service = self.start("--ranks", ranks)
            for type in ("f64", "f32"):
                self.solvable(service, "m", type=type)
                b = self.b(ranks, type)[0]
                for method, preconditioner in (("cg", "jacobi"), ("cg", "none"), ("cg", "multigrid"), ("gmres", "block_jacobi"),
                                               ("minres", "none"), ("bicgstab", "jacobi")):
                    with self.subTest(ranks=ranks, type=type, method=method, preconditioner=preconditioner):
                        answer = self.solve(service, b, f"method={method}&preconditioner={preconditioner}&wait=60&keep=1", "m", 200)
                        x, report = self.of_command(b, ranks, type, "--solver", method, "--preconditioner", preconditioner)
                        if BACKEND == "host":
                            self.assertEqual(answer.body, x.astype(NAMES[type]).tobytes())
                            self.assertEqual(answer.headers["Shardmat-Iterations"], str(report["iterations"]))
                        else:  # the service has measured which kernel is fastest, the command has not
                            again = self.solve(service, b, f"method={method}&preconditioner={preconditioner}&wait=60", "m", 200)
                            self.assertEqual(answer.body, again.body)
                        job = self.job(service, answer.headers["Shardmat-Job"])
                        self.assertEqual((job["state"], job["method"], job["preconditioner"]), ("done", method, preconditioner))
                        self.assertEqual(service.get(f"/v1/jobs/{job['id']}/x").body, answer.body)
                        self.assertEqual(service.get(f"/v1/vectors/{job['x']}").body, answer.body)
                        exact = spla.spsolve(self.grid.tocsc(), b.astype(np.float64))
                        np.testing.assert_allclose(np.frombuffer(answer.body, NAMES[type]), exact, rtol=0,
                                                   atol=(1e-5 if type == "f64" else 1e-1) * np.abs(exact).max())
                        self.assertEqual(service.ask("DELETE", f"/v1/jobs/{job['id']}").status, 204)
                        self.assert_problem(service.get(f"/v1/vectors/{job['x']}"), 404, "no_vector")
                self.assertEqual(service.ask("POST", "/v1/matrices/m/unload").status, 200)
            self.assertEqual(service.get("/v1/ranks").json["arena"]["used"], 0)
            self.assertEqual(service.terminate(), OK, service.report())

    def test_vectors_columns_and_first_guesses(self):
        for ranks in (1, 2):
            service = self.start("--ranks", ranks, state=f"state{ranks}")
            self.solvable(service)
            b = self.b(3, columns=3)
            query = "method=cg&preconditioner=jacobi&wait=60"
            three = self.solve(service, b, query + "&k=3&keep=1", status=200)
            self.assertEqual(three.headers["Shardmat-Shape"], f"3,{b.shape[1]}")
            x = np.frombuffer(three.body).reshape(b.shape)
            for j in range(3):
                self.assertLessEqual(np.linalg.norm(b[j] - self.grid @ x[j]), 1.01e-8 * np.linalg.norm(b[j]))
            id = three.headers["Shardmat-Job"]
            again = self.solve(service, b, query + f"&k=3&x0={id}", status=200)  # it is solved already
            self.assertEqual((again.body, again.headers["Shardmat-Iterations"]), (three.body, "0"))
            vector = service.ask("POST", "/v1/vectors", json.dumps({"matrix": "grid", "columns": 3})).json["id"]
            self.assertEqual(service.ask("PUT", f"/v1/vectors/{vector}", b.tobytes()).status, 204)
            answer = service.ask("POST", "/v1/matrices/grid/solve", Content_Type="application/json",
                                 body=json.dumps({"b": vector, "method": "cg", "preconditioner": "jacobi", "rtol": 1e-8, "wait": 60}))
            self.assertEqual((answer.status, answer.body), (200, three.body), answer)
            x_of_job = self.job(service, id)["x"]
            self.assert_problem(service.get(f"/v1/jobs/{answer.headers['Shardmat-Job']}"), 404, "no_job")  # it was fetched
            product = service.ask("POST", f"/v1/matrices/grid/multiply?x={x_of_job}")
            np.testing.assert_allclose(np.frombuffer(product.body).reshape(b.shape), b, rtol=0, atol=1e-6)
            self.assertEqual(service.terminate(), OK, service.report())

    def test_a_solver_stays_and_takes_new_values(self):
        service = self.start("--ranks", 2)
        before = self.solvable(service, updatable=True)
        b, query = self.b(4)[0], "method=cg&preconditioner=multigrid&keep=1&wait=60"
        jobs = [self.job(service, self.solve(service, b, query, status=200).headers["Shardmat-Job"]) for _ in range(2)]
        self.assertEqual([job["resident"] for job in jobs], [False, True])
        after = service.get("/v1/matrices/grid").json
        self.assertEqual(len(after["ranks"]), len(before["ranks"]))
        for rank in range(len(after["ranks"])):  # on one GPU there is one
            self.assertEqual(after["ranks"][rank]["device_bytes"] - before["ranks"][rank]["device_bytes"], after["ranks"][rank]["solver_bytes"])
            self.assertGreater(after["ranks"][rank]["solve_bytes"], 0)
            self.assertGreater(after["ranks"][rank]["device_bytes"], before["ranks"][rank]["device_bytes"])
        put = service.ask("PUT", "/v1/matrices/grid/values", (3 * self.grid.data).tobytes())
        self.assertEqual(put.status, 200, put)
        third = self.solve(service, b, query, status=200)
        job = self.job(service, third.headers["Shardmat-Job"])
        self.assertEqual((job["resident"], job["generation"]), (True, put.json["generation"]))
        self.assertLessEqual(np.linalg.norm(b - 3 * (self.grid @ np.frombuffer(third.body))), 1.01e-8 * np.linalg.norm(b))

    def test_a_job_that_fails_beside_one_that_is_set_up(self):
        cube = sp.kronsum(sp.kronsum(poisson(30), sp.diags([-1, 2, -1], [-1, 0, 1], (30, 30))), sp.csr_matrix((1, 1))).tolil()
        cube[1000, :] = 0  # no pivot
        write_binsparse(self.library / "hole.h5", cube.tocsr())
        for ranks in (1, 2):
            service = self.start("--ranks", ranks, state=f"state{ranks}")
            self.solvable(service, "hole", "hole.h5")
            b = np.ones(27_000)
            alone = self.solve(service, b, "method=gmres&preconditioner=ilu&wait=60", "hole")
            self.assert_problem(alone, 422, "bad_job", "pivot")
            for turn in range(4):  # the set-up pauses every 10 ms
                beside = [self.solve(service, b, f"method=gmres&preconditioner=multigrid&max_iterations={2 + turn}&coarse_size={400 + turn}",
                                     "hole", status=202).json["id"] for _ in range(2)]
                failing = self.solve(service, b, "method=gmres&preconditioner=ilu&wait=60", "hole")
                self.assertEqual((failing.status, failing.json["error"]), (422, alone.json["error"]), failing)
                for id in beside:
                    self.assertIn(service.ask("DELETE", f"/v1/jobs/{id}").status, (200, 204))
            self.assertEqual(service.get("/v1/ranks").json["restarts"], 0)
            self.assertEqual(service.terminate(), OK, service.report())

    def test_wrong_requests(self):
        service = self.start("--ranks", 2)
        self.solvable(service)
        self.loaded(service)
        b, nothing = self.b(1)[0], b""
        self.assert_problem(self.solve(service, b, name="none"), 404, "no_matrix")
        self.assert_problem(self.solve(service, self.vector(1)[0], name="bar"), 409, "not_solvable", '"solvable": true')
        for query, says in (("walt=3", '"walt"'), ("wait=x", "seconds"), ("k=0", "k must"), ("limit=0", "above 0"), ("limit=1e12", "at most 1e+09"), ("wait=1e300", "at most 1e+09"), ("method=", "method"),
                            ("method=cg&solver=cg", "one thing too much"), ("rtol=1%20solver=x", "rtol"), ("priority=now", "priority")):
            self.assert_problem(self.solve(service, b, query), 400, "malformed", says)
        self.assert_problem(self.solve(service, b[1:]), 422, "wrong_length", str(b.nbytes))
        self.assert_problem(self.solve(service, b, "type=f32"), 422, "wrong_type")
        self.assert_problem(self.solve(service, nothing, "b=vec-1"), 404, "no_vector")
        self.assert_problem(self.solve(service, b, "x0=job-1"), 404, "no_job")
        self.assert_problem(service.get("/v1/jobs/job-1"), 404, "no_job")
        self.assert_problem(service.ask("DELETE", "/v1/jobs/job-1"), 404, "no_job")
        for query, says in (("method=cgg", "cgg"), ("preconditioner=jacobi&levels=2", "levels"), ("method=chebyshev&restart=3", "restart")):
            self.assert_problem(self.solve(service, b, query + "&wait=60"), 422, "bad_job", says)
        bad = b.copy()
        bad[7] = np.nan
        self.assert_problem(self.solve(service, bad, "wait=60"), 422, "bad_job", "NaN")
        answer = self.solve(service, b, "method=cg&preconditioner=none&max_iterations=3&wait=60")
        self.assert_problem(answer, 422, "not_converged")
        job = self.job(service, answer.headers["Shardmat-Job"])
        self.assertEqual((job["state"], job["iteration"], job["result"][0]["reason"]), ("failed", 3, "diverged_iterations"))
        self.assertEqual(service.get(f"/v1/jobs/{job['id']}/x").status, 200)  # as far as it came
        for body, says in (("{}", "b is missing"), ('{"b": []}', "b must"), ("[", "JSON"), ('{"b": "vec-1", "walt": 1}', "walt")):
            answer = service.ask("POST", "/v1/matrices/grid/solve", body, Content_Type="application/json")
            self.assert_problem(answer, 400, "malformed", says)
        self.assertEqual(service.multiply("grid", b).status, 200)


class Client(SolveTest):
    def test_it_solves_from_a_file_to_a_file(self):
        service = self.start("--ranks", 2)
        state = ["--state", service.state]
        self.succeed("client", "load", "grid", "grid.h5", "--solvable", *state)
        b = self.b(5, columns=2)
        write_vector(self.path("b.npy"), b.T)
        said = self.succeed("client", "solve", "grid", "b.npy", "x.npy", "--rhs", 2, "--solver", "cg", "--preconditioner", "jacobi", "--settings",
                            "rtol=1e-10", *state).out
        self.assertRegex(said, r"^\d+ iterations, residual \S+ of b\n$")
        x = read_vector(self.path("x.npy"))
        for j in range(2):
            self.assertLessEqual(np.linalg.norm(b[j] - self.grid @ x[:, j]), 1.01e-10 * np.linalg.norm(b[j]))
        self.assertEqual(self.succeed("client", "jobs", *state).out, "")  # it was fetched
        self.solvable(service, "slow", "slow.h5")
        id = self.endless(service)
        self.running(service, id)
        self.assertRegex(self.succeed("client", "jobs", *state).out, rf"^{id} +running +solve slow, iteration \d+, residual ")
        self.succeed("client", "cancel", id, *state)
        self.assertEqual(self.job(service, id)["state"], "cancelled")
        self.fail_with(INPUT, "client", "cancel", "job-1", *state, says="no job job-1")
        self.fail_with(USAGE, "client", "solve", "grid", "b.npy", "y.npy", "--settings", "rtol", *state, says="rtol")
        self.fail_with(INPUT, "client", "solve", "none", "b.npy", "y.npy", *state, says="no matrix none")


class Life(SolveTest):
    def test_products_of_others_come_in_between(self):
        service = self.start("--ranks", 2)
        self.solvable(service, "slow", "slow.h5")
        self.solvable(service)
        id = self.endless(service)
        self.running(service, id)
        x, before = self.b(2)[0], self.job(service, id)["iteration"]
        expected = {name: service.multiply(name, x).body for name in ("slow", "grid")}
        for _ in range(40):
            for name in ("slow", "grid"):
                self.assertEqual(service.multiply(name, x).body, expected[name])
        short = self.solve(service, x, "method=cg&preconditioner=jacobi&wait=60", status=200)
        self.assertLessEqual(np.linalg.norm(x - self.grid @ np.frombuffer(short.body)), 1.01e-8 * np.linalg.norm(x))
        other = self.solve(service, x, "method=gmres&preconditioner=none&wait=0", "slow", 202).json["id"]  # other settings, the same matrix
        self.assertEqual(self.ended(service, other)["state"], "done")
        after = self.job(service, id)
        self.assertEqual(after["state"], "running")
        self.assertGreater(after["iteration"], before)
        answer = service.ask("DELETE", f"/v1/jobs/{id}")
        self.assertEqual((answer.status, answer.json["state"]), (200, "cancelled"), answer)
        self.assert_problem(service.get(f"/v1/jobs/{id}/x"), 409, "no_result")
        self.assertLessEqual(len(answer.json["history"]), 512)
        self.assertGreater(len(answer.json["history"]), 0)
        self.assertEqual(service.ask("DELETE", f"/v1/jobs/{id}").status, 204)
        self.assert_problem(service.get(f"/v1/jobs/{id}"), 404, "no_job")
        self.assertEqual(service.get("/v1/ranks").json["arena"]["used"], 0)
        self.assertEqual([one["state"] for one in service.get("/v1/vectors").json["vectors"]], ["ready"])  # x of `other`
        self.assertEqual(service.terminate(), OK, service.report())

    def test_products_come_in_between_while_a_solver_is_set_up(self):
        large = poisson(400)
        write_binsparse(self.library / "large.h5", large)
        for ranks in (1, 2):
            service = self.start("--ranks", ranks, state=f"state{ranks}")
            self.solvable(service)
            self.solvable(service, "large", "large.h5")
            x, b = self.b(2)[0], np.ones(large.shape[0]).tobytes()
            expected = service.multiply("grid", x).body
            query = "method=cg&preconditioner=multigrid"
            id = self.solve(service, b, query, "large", 202).json["id"]
            products = 0
            while (job := self.job(service, id))["state"] in ("queued", "running") and "method" not in job:
                self.assertEqual(service.multiply("grid", x).body, expected)
                products += 1
            self.assertGreater(products, 1)
            job = self.ended(service, id)
            self.assertEqual((job["state"], job["resident"]), ("done", False))
            whole = service.get(f"/v1/jobs/{id}/x").body
            service.ask("DELETE", f"/v1/jobs/{id}")
            again = self.solve(service, b, query + "&wait=60", "large", 200)  # in one slice after the other of iterations alone
            self.assertEqual(again.body, whole)
            cancelled = self.solve(service, b, query + "&levels=3", "large", 202).json["id"]  # another solver
            service.wait_for("its begin", lambda: self.job(service, cancelled)["state"] == "running")
            self.assertEqual(service.ask("DELETE", f"/v1/jobs/{cancelled}").json["state"], "cancelled")
            self.assertEqual(service.multiply("grid", x).body, expected)
            self.assertEqual(self.solve(service, b, query + "&levels=3&wait=60", "large", 200).headers["Shardmat-Iterations"].isdigit(), True)
            self.assertEqual(service.terminate(), OK, service.report())

    def test_one_solver_serves_one_job_after_another(self):
        service = self.start("--ranks", 1)
        self.solvable(service, "slow", "slow.h5", updatable=True)
        first, second = self.endless(service), self.endless(service)
        self.running(service, first)
        self.assertEqual(self.job(service, second)["state"], "queued")
        self.assertEqual([one["id"] for one in service.get("/v1/jobs").json["jobs"]], [first, second])
        values = np.zeros(service.get("/v1/matrices/slow").json["nnz"]).tobytes()
        self.assert_problem(service.ask("PUT", "/v1/matrices/slow/values", values), 409, "solving")
        self.assertEqual(service.ask("DELETE", f"/v1/jobs/{first}").json["state"], "cancelled")
        self.running(service, second)
        self.assertEqual(service.ask("POST", "/v1/matrices/slow/unload").status, 200)
        job = self.ended(service, second)
        self.assertEqual((job["state"], job["code"]), ("failed", "no_matrix"))
        self.assertEqual(service.terminate(), OK, service.report())

    def test_the_limit_has_the_queue_in_it(self):
        service = self.start("--ranks", 2)
        self.solvable(service, "slow", "slow.h5")
        running = self.endless(service, "&limit=3")
        waiting = self.endless(service, "&limit=0.2")
        job = self.ended(service, waiting)
        self.assertEqual((job["state"], job["code"], job["iteration"], job["running_seconds"]), ("failed", "time_limit", 0, 0))
        job = self.ended(service, running)
        self.assertEqual((job["state"], job["code"], job["result"][0]["reason"]), ("failed", "time_limit", "interrupted"))
        x = np.frombuffer(service.get(f"/v1/jobs/{running}/x").body)
        self.assertGreater(np.linalg.norm(x), 0)  # a later job can begin from it
        self.assert_problem(self.solve(service, self.b(1)[0], "method=gmres&preconditioner=none&restart=1&rtol=1e-300&max_iterations=1000000000"
                                       "&limit=0.3&wait=60", "slow"), 504, "time_limit")
        self.assertEqual(service.terminate(), OK, service.report())

    def test_a_client_that_waits_and_leaves_ends_its_job(self):
        service = self.start("--ranks", 1)
        self.solvable(service, "slow", "slow.h5")
        b = self.b(1)[0]
        with service.open() as client:
            client.sendall(b"POST /v1/matrices/slow/solve?method=gmres&preconditioner=none&restart=1&rtol=1e-300&max_iterations=1000000000&wait=600 "
                           b"HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % b.nbytes + b.tobytes())
            service.wait_for("a job", lambda: service.get("/v1/jobs").json["jobs"])
        id = service.get("/v1/jobs").json["jobs"][0]["id"]
        self.assertEqual(self.ended(service, id)["state"], "cancelled")
        self.assertEqual(service.get("/v1/ranks").json["arena"]["used"], 0)
        self.assertEqual(service.terminate(), OK, service.report())

    def test_the_description_has_every_parameter_and_setting_of_a_job(self):
        service = self.start("--ranks", 1)
        paths = service.get("/openapi.json").json["paths"]
        for kind, alias in (("solve", {"solver"}), ("eigen", set()), ("pagerank", set())):  # solver is the same as method
            with self.subTest(kind=kind):
                self.solvable(service, "m" + kind)
                said = service.ask("POST", f"/v1/matrices/m{kind}/{kind}?none=1").json["error"]
                known = set(re.search(r"; there are (.*)", said)[1].replace("and the settings: ", "").split(", ")) - alias
                told = {parameter["name"] for parameter in paths[f"/v1/matrices/{{matrix}}/{kind}"]["post"]["parameters"] if parameter.get("in") == "query"}
                self.assertEqual(told, known)
        self.assertEqual(service.terminate(), OK, service.report())

    def test_x_stays_when_the_connection_is_cut_while_it_is_sent(self):
        service = self.start("--ranks", 1)
        self.solvable(service)
        b = self.b(1, columns=256)
        head = f"POST /v1/matrices/grid/solve?k=256&method=cg&preconditioner=jacobi&rtol=0.5&wait=60 HTTP/1.1\r\nHost: a\r\nContent-Length: {b.nbytes}\r\n\r\n"
        with service.open() as client:
            client.sendall(head.encode() + b.tobytes())
            self.assertIn(b"HTTP/1.1 200", client.recv(12))
        [job] = service.get("/v1/jobs").json["jobs"]
        self.assertEqual(job["state"], "done")
        x = service.get(f"/v1/jobs/{job['id']}/x")
        self.assertEqual(len(x.body), b.nbytes)
        whole = self.solve(service, b, "k=256&method=cg&preconditioner=jacobi&rtol=0.5&wait=60", status=200)
        self.assertEqual(whole.body, x.body)
        self.assert_problem(service.get(f"/v1/jobs/{whole.headers['Shardmat-Job']}"), 404, "no_job")
        self.assertEqual(service.terminate(), OK, service.report())

    def test_the_command_cancels_its_job_when_it_ends(self):
        service = self.start("--ranks", 1, "--listen", "127.0.0.1:0")
        self.solvable(service, "slow", "slow.h5")
        write_vector(self.path("b.npy"), self.b(1)[0])
        for at in ([], ["--url", f"http://127.0.0.1:{service.port()}"]):
            command = subprocess.Popen([PROGRAM, "client", "solve", "slow", "b.npy", "x.npy", "--state", service.state, "--solver", "gmres",
                                        "--preconditioner", "none", "--settings", "restart=1 rtol=1e-300 max_iterations=1000000000", *at],
                                       cwd=self.directory, env=environment())
            self.addCleanup(command.kill)
            service.wait_for("a job", lambda: service.get("/v1/jobs").json["jobs"])
            id = service.get("/v1/jobs").json["jobs"][0]["id"]
            command.send_signal(signal.SIGINT)
            self.assertNotEqual(command.wait(), 0)
            self.assertEqual(self.ended(service, id)["state"], "cancelled")
            self.assertEqual(service.ask("DELETE", f"/v1/jobs/{id}").status, 204)

    def test_events_tell_the_progress(self):
        service = self.start("--ranks", 2)
        self.solvable(service, "slow", "slow.h5")
        with service.open() as client:
            client.sendall(b"GET /v1/events HTTP/1.1\r\nHost: a\r\n\r\n")
            text = client.recv(65536)
            id = self.endless(service)
            while text.count(b'"state":"running"') < 3:
                text += client.recv(65536)
            service.ask("DELETE", f"/v1/jobs/{id}")
            while b'"state":"cancelled"' not in text:
                text += client.recv(65536)
        events = [json.loads(line[6:]) for line in text.decode().splitlines() if line.startswith("data: ") and id in line]
        self.assertEqual([events[0]["state"], events[-1]["state"]], ["queued", "cancelled"])
        iterations = [event["iteration"] for event in events if event["state"] == "running"]
        self.assertEqual(iterations, sorted(iterations))
        self.assertGreater(iterations[-1], 0)
        self.assertEqual({event["matrix"] for event in events}, {"slow"})
        self.running(service, self.endless(service))
        self.assertEqual(service.terminate(), OK, service.report())  # jobs end with the service


class End(SolveTest):
    def test_jobs_that_nobody_waits_for_are_named_and_fail(self):
        service = self.start("--ranks", 2)
        self.solvable(service, "slow", "slow.h5")
        first, second = self.endless(service), self.endless(service)  # one after the other, or merged
        self.running(service, first)
        with service.open() as listener:
            listener.sendall(b"GET /v1/events HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertIn(b"200", listener.recv(4096))
            self.assertEqual(service.terminate(), OK, service.report())
            told = read_all(listener).decode()
        for id in (first, second):
            self.assertRegex(service.report(), rf"{id} is ended by the end of the service: solve of slow, ")
            self.assertRegex(told, rf'"{id}".*the service ended before the job was done')

    def test_jobs_go_on_in_the_drain_time(self):
        service = self.start("--ranks", 2, "--drain-seconds", 600)
        self.solvable(service), self.solvable(service, "slow", "slow.h5")
        b, query = self.b(1)[0], "method=cg&preconditioner=none"
        x = self.solve(service, b, query + "&wait=60", status=200).body
        endless = self.endless(service)
        queued = self.solve(service, b, query, status=202).json["id"]
        service.process.send_signal(signal.SIGTERM)
        service.wait_for("the drain time", lambda: service.get("/v2/health/ready").status == 503)
        self.assert_problem(self.solve(service, b, query), 503, "draining")
        self.assertEqual(self.solve(service, b, query + "&wait=60", status=200).body, x)
        self.assertEqual(self.ended(service, queued)["state"], "done")
        self.assertEqual(service.get(f"/v1/jobs/{queued}/x").body, x)
        self.running(service, endless, self.job(service, endless)["iteration"] + 1)
        service.process.send_signal(signal.SIGTERM)  # at once
        self.assertEqual(service.process.wait(LIMIT), 128 + signal.SIGTERM)


class Losses(SolveTest):
    def test_a_solver_that_falls_back_beside_another_job(self):
        grid = (poisson(90) - 0.1 * sp.identity(8100)).tocsr()  # not positive: auto takes one method after the other
        write_binsparse(self.library / "indefinite.h5", grid)
        service = self.start("--ranks", 2)
        self.solvable(service, "m", "indefinite.h5")
        b = np.random.default_rng(1).uniform(-1, 1, 8100)
        other = self.solve(service, b, "method=bicgstab&preconditioner=none&rtol=1e-300&max_iterations=1000000000", "m", 202).json["id"]
        self.running(service, other)
        answer = self.solve(service, b, "wait=120&keep=1", "m", 200)
        x = np.frombuffer(answer.body)
        self.assertLessEqual(np.linalg.norm(b - grid @ x), 1.1e-8 * np.linalg.norm(b))
        self.assertNotEqual(self.job(service, answer.headers["Shardmat-Job"])["method"], "cg")
        self.assertEqual(self.job(service, other)["restarts"], 0)
        self.assertEqual(service.terminate(), OK, service.report())

    def test_x_of_jobs_that_are_done_outlives_the_ranks(self):
        write_binsparse(self.library / "graph.h5", abs(self.grid))
        for ranks in (1, 2):
            with self.subTest(ranks=ranks):
                service = self.start("--ranks", ranks, "--restart-delay", 0.05, state=f"kept{ranks}")
                self.solvable(service), self.solvable(service, "graph", "graph.h5")
                query = "method=cg&preconditioner=jacobi"
                ids = [self.solve(service, self.b(k, columns=k), f"{query}&k={k}", status=202).json["id"] for k in (1, 3)]
                ids.append(self.solve(service, self.b(4)[0], query + "&wait=60&keep=1", status=200).headers["Shardmat-Job"])
                ids.append(service.ask("POST", "/v1/matrices/graph/pagerank").json["id"])
                ids.append(service.ask("POST", "/v1/matrices/grid/eigen?count=3").json["id"])
                for id in ids:
                    self.assertEqual(self.ended(service, id)["state"], "done")
                x = [service.get(f"/v1/jobs/{id}/x").body for id in ids]
                self.assertEqual(service.get("/v1/ranks").json["arena"]["used"], 0)
                for restarts in (1, 2):
                    os.kill(service.workers()[0], signal.SIGKILL)
                    service.wait_for("the restart", lambda: service.get("/v1/ranks").json["restarts"] == restarts)
                    service.wait_until_ready()
                    self.assertEqual([service.get(f"/v1/jobs/{id}/x").body for id in ids], x)
                again = self.solve(service, self.b(3, columns=3), f"{query}&k=3&x0={ids[1]}&wait=60", status=200)
                self.assertEqual((again.body, again.headers["Shardmat-Iterations"]), (x[1], "0"))
                product = service.ask("POST", f"/v1/matrices/grid/multiply?x={self.job(service, ids[1])['x']}")
                np.testing.assert_allclose(np.frombuffer(product.body).reshape(3, -1), self.b(3, columns=3), rtol=0, atol=1e-6)
                for id in ids:
                    self.assertEqual(service.ask("DELETE", f"/v1/jobs/{id}").status, 204)
                self.assertEqual(service.terminate(), OK, service.report())

    def test_a_kept_x_goes_when_requests_need_its_memory(self):
        service = self.start("--ranks", 2, "--restart-delay", 0.05, "--arena", 1 << 20)
        self.solvable(service)
        id = self.solve(service, self.b(1)[0], "method=cg&preconditioner=jacobi", status=202).json["id"]
        self.assertEqual(self.ended(service, id)["state"], "done")
        x = service.get(f"/v1/jobs/{id}/x").body
        many = self.b(1, columns=18)  # with y nearly all of the memory
        self.assertEqual(service.multiply("grid", many, "?k=18").status, 200)
        self.assertEqual(service.get(f"/v1/jobs/{id}/x").body, x)
        os.kill(service.workers()[0], signal.SIGKILL)
        service.wait_for("the restart", lambda: service.get("/v1/ranks").json["restarts"] == 1)
        service.wait_until_ready()
        self.assert_problem(service.get(f"/v1/jobs/{id}/x"), 410, "vector_lost")
        self.assertEqual(service.terminate(), OK, service.report())

    def test_a_job_begins_once_more_from_its_last_kept_iterate(self):
        for ranks in (1, 2):
            with self.subTest(ranks=ranks):
                service = self.start("--ranks", ranks, "--restart-delay", 0.05, state=f"state{ranks}")
                self.solvable(service, "slow", "slow.h5")
                id = self.endless(service)
                norm = np.linalg.norm(self.b(1)[0])
                service.wait_for("a smaller residual", lambda: self.job(service, id).get("residual", norm) < 0.5 * norm)
                seconds = self.job(service, id)["running_seconds"]
                service.wait_for("an iterate that is kept", lambda: self.job(service, id)["running_seconds"] > seconds + 2)
                os.kill(service.workers()[-1], signal.SIGKILL)
                self.begun_again(service, id)
                job = self.job(service, id)
                self.assertLess(job["history"][0][1], 0.6 * norm)  # not from the beginning
                os.kill(service.workers()[0], signal.SIGKILL)
                job = self.ended(service, id)
                self.assertEqual((job["state"], job["code"], job["restarts"]), ("failed", "rank_lost", 1))
                service.wait_until_ready()
                answer = self.solve(service, self.b(1)[0], "method=gmres&preconditioner=none&wait=60", "slow", 200)
                self.assertEqual(len(answer.body), self.b(1)[0].nbytes)
                self.assertEqual(service.terminate(), OK, service.report())


if __name__ == "__main__":
    unittest.main()
