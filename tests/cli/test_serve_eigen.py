"""Jobs that find eigenvalues: POST /v1/matrices/NAME/eigen, for one matrix and for K x = λ M x."""

import json
import os
import re
import signal
import unittest

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from support import BACKEND, INPUT, OK, USAGE, read_vector, write_binsparse
from test_serve import NAMES
from test_serve_solve import SolveTest, poisson


NOT_CONVERGED = 7


class EigenTest(SolveTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.k = (poisson(14) + sp.diags(np.linspace(0, 0.1, 196))).tocsr()  # no multiple eigenvalues
        cls.m = sp.diags([0.1, 1, 0.1], [-1, 0, 1], cls.k.shape).tocsr()
        cls.values = scipy.linalg.eigh(cls.k.toarray(), eigvals_only=True)
        cls.pairs = scipy.linalg.eigh(cls.k.toarray(), cls.m.toarray(), eigvals_only=True)
        write_binsparse(cls.library / "k.h5", cls.k)
        write_binsparse(cls.library / "m.h5", cls.m)
        write_binsparse(cls.library / "grid_mass.h5", sp.diags([0.1, 1, 0.1], [-1, 0, 1], cls.grid.shape).tocsr())
        cls.shift = cls.pairs[40] + 0.2 * (cls.pairs[41] - cls.pairs[40])
        cls.nearest = np.sort(cls.pairs[np.argsort(np.abs(cls.pairs - cls.shift))[:3]])

    def pair(self, service, type="f64"):
        self.solvable(service, "k", "k.h5", type=type)
        self.solvable(service, "m", "m.h5", type=type)

    def eigen(self, service, query="", name="k", body=b"", status=200):
        answer = service.ask("POST", f"/v1/matrices/{name}/eigen" + ("?" + query if query else ""), body)
        self.assertEqual(answer.status, status, answer)
        return answer.json

    def vectors(self, service, job):
        """A column of each eigenvector, as the service keeps them."""
        answer = service.get(f"/v1/vectors/{job['x']}")
        self.assertEqual(answer.body, service.get(f"/v1/jobs/{job['id']}/x").body)
        return np.frombuffer(answer.body, NAMES[job["type"]]).reshape(job["columns"], -1).T

    def endless(self, service, query=""):
        """The id of a job that does not end by itself: the largest eigenvalues of slow are a complex pair."""
        return self.eigen(service, f"method=power&max_iterations=1000000000{query}", "slow", status=202)["id"]


class Answers(EigenTest):
    def test_values_and_vectors_of_every_method(self):
        for ranks in (1, 2, 3):
            service = self.start("--ranks", ranks, state=f"state{ranks}")
            self.pair(service)
            for query, expected, method in (
                    ("count=5", self.values[-5:], "lanczos"), ("count=4&which=smallest", self.values[:4], "lanczos"),
                    ("count=3&which=both", np.concatenate([self.values[:3], self.values[-3:]]), "lanczos"),
                    ("method=power&tolerance=1e-4", self.values[-1:], "power"), ("method=lobpcg&count=4", self.values[:4], "lobpcg"),
                    ("mass=m&count=6", self.pairs[:6], "shift_invert"), ("mass=m&count=6&method=lobpcg", self.pairs[:6], "lobpcg"),
                    (f"mass=m&count=3&shift={self.shift}", self.nearest, "shift_invert")):
                with self.subTest(ranks=ranks, query=query):
                    if BACKEND == "cuda" and method in ("lobpcg", "shift_invert"):
                        self.assertIn("runs on the host only", self.eigen(service, query + "&wait=60", status=422)["error"])
                        continue
                    job = self.eigen(service, query + "&wait=60")
                    self.assertEqual((job["kind"], job["state"], job["method"], job["columns"]), ("eigen", "done", method, len(expected)))
                    found = np.array([pair["value"] for pair in job["result"]])
                    np.testing.assert_allclose(found, expected, rtol=1e-6 if method != "power" else 1e-3)
                    self.assertEqual(job["merged"], 1)
                    x = self.vectors(service, job)
                    mass = self.m if "mass" in query else sp.identity(len(self.values))
                    for j, pair in enumerate(job["result"]):
                        residual = np.linalg.norm(self.k @ x[:, j] - pair["value"] * (mass @ x[:, j]))
                        self.assertLessEqual(residual, (1e-3 if method == "power" else 1e-6) * np.linalg.norm(x[:, j]))
                        if method in ("lobpcg", "shift_invert"):
                            self.assertAlmostEqual(pair["frequency"], np.sqrt(pair["value"]) / (2 * np.pi), 12)
                    self.assertEqual(service.ask("DELETE", f"/v1/jobs/{job['id']}").status, 204)
                    self.assert_problem(service.get(f"/v1/vectors/{job['x']}"), 404, "no_vector")
            self.assertEqual(service.get("/v1/ranks").json["arena"]["used"], 0)
            self.assertEqual(service.terminate(), OK, service.report())

    def test_first_vectors(self):
        service = self.start("--ranks", 2)
        self.pair(service, "f64")
        self.eigen(service, "count=3&x0=none", status=404)
        lanczos = self.eigen(service, "count=3&wait=60")
        if BACKEND == "host":
            cold = self.eigen(service, "mass=m&count=6&method=lobpcg&wait=60")
            warm = self.eigen(service, f"mass=m&count=6&method=lobpcg&x0={cold['id']}&wait=60")
            fewer = self.eigen(service, f"mass=m&count=6&method=lobpcg&x0={lanczos['x']}&wait=60")  # three vectors
            self.assertLess(warm["iteration"], cold["iteration"])
            for job in (warm, fewer):
                np.testing.assert_allclose([pair["value"] for pair in job["result"]], self.pairs[:6], rtol=1e-6)
        refused = self.eigen(service, f"count=3&x0={lanczos['id']}&wait=60", status=422)
        self.assertIn("begins with vectors of its own", refused["error"])
        self.assertEqual(service.get("/v1/ranks").json["arena"]["used"], 0)
        self.assertEqual(service.terminate(), OK, service.report())

    def test_values_are_those_of_the_command(self):
        service = self.start("--ranks", 2)
        for type in ("f64", "f32"):
            self.pair(service, type)
            job = self.eigen(service, "count=3&wait=60")
            self.succeed("eigen", self.library / "k.h5", "--count", 3, "--type", type, "--backend", BACKEND, "--json", "e.json", ranks=2)
            expected = [pair["value"] for pair in json.loads(self.path("e.json").read_text())["pairs"]]
            np.testing.assert_allclose([pair["value"] for pair in job["result"]], expected, rtol=1e-8 if type == "f64" else 1e-4)
            for name in ("k", "m"):
                self.assertEqual(service.ask("POST", f"/v1/matrices/{name}/unload").status, 200)
        self.assertEqual(service.terminate(), OK, service.report())

    def test_wrong_requests(self):
        service = self.start("--ranks", 2)
        self.pair(service)
        self.loaded(service)
        self.solvable(service)

        def refused(query, status, code, says="", name="k", body=b""):
            self.assert_problem(service.ask("POST", f"/v1/matrices/{name}/eigen?{query}" if query else f"/v1/matrices/{name}/eigen", body), status,
                                code, says)

        refused("", 404, "no_matrix", name="none")
        refused("", 409, "not_solvable", name="bar")
        refused("mass=bar", 409, "not_solvable")
        refused("mass=none", 404, "no_matrix")
        refused("mass=grid", 422, "wrong_mass")
        for query, says in (("b=vec-1", '"b"'), ("count=0", "count"), ("count=197", "count"), ("count=200&which=both", "count"), ("walt=3", '"walt"'),
                            ("wait=x", "seconds"), ("mass=", "mass")):
            refused(query, 400, "malformed", says)
        refused("", 400, "malformed", "JSON", body=b"[")
        refused("count=2", 400, "malformed", "not in both", body=b"{}")
        for query, says in (("method=lancsoz", "lancsoz"), ("which=upper", "upper"), ("tolerance=x", "tolerance"), ("mass=m&method=lanczos", "lobpcg"),
                            ("shift=1&method=lobpcg", "shift_invert"), ("confirm=yes", "0 or 1"), ("inner=qr&shift=1", "qr")):
            refused(query + "&wait=60", 422, "bad_job", says)
        answer = service.ask("POST", "/v1/matrices/k/eigen?count=4&tolerance=1e-300&max_iterations=60&wait=60")
        self.assert_problem(answer, 422, "not_converged")
        job = self.job(service, answer.headers["Shardmat-Job"])
        self.assertEqual(job["state"], "failed")
        np.testing.assert_allclose(self.vectors(service, job).shape, (196, 4))  # as far as it came
        self.assertEqual(self.eigen(service, body=b'{"count": 2, "wait": 60}')["columns"], 2)
        self.assertEqual(service.terminate(), OK, service.report())


class Remote(EigenTest):
    def test_the_command_lets_the_service_work(self):
        service = self.start("--ranks", 2)
        remote = ["--remote", service.state]
        for options, expected, mass in ((["--count", 4, "--which", "smallest"], self.values[:4], None), (["--count", 3, "--mass", "m.h5"], self.pairs[:3], self.m),
                                        (["--mass", "m.h5", "--shift", self.shift, "--count", 3], self.nearest, self.m)):
            said = self.succeed("eigen", "k.h5", *options, "--vectors", "x.npy", "--force", *remote).out
            self.assertIn("196 × 196", said)
            told = [float(line.split()[0]) for line in said.splitlines() if re.match(r" *\d\.\d{9}", line)]
            np.testing.assert_allclose(told, expected, rtol=1e-7)
            x = read_vector(self.path("x.npy"))
            self.assertEqual(x.shape, (196, len(expected)))
            mass = sp.identity(196) if mass is None else mass
            for j, value in enumerate(expected):
                self.assertLessEqual(np.linalg.norm(self.k @ x[:, j] - value * (mass @ x[:, j])), 1e-5 * np.linalg.norm(x[:, j]))
        self.assertEqual(self.succeed("client", "jobs", "--state", service.state).out, "")
        self.succeed("eigen", "k.h5", "--no-confirm", "--method", "lobpcg", "--guard", 5, "--tolerance", "1e-7", "--seed", 3, *remote)
        self.fail_with(USAGE, "eigen", "k.h5", "--monitor", *remote, says="--monitor")
        self.fail_with(USAGE, "eigen", "k.h5", "--mass", "auto", *remote, says="CalculiX")
        self.fail_with(INPUT, "eigen", "none.h5", *remote, says="none.h5")
        result = self.call("eigen", "k.h5", "--count", 4, "--tolerance", "1e-300", "--max-iterations", 60, "--vectors", "far.npy", *remote)
        self.assertEqual(result.code, NOT_CONVERGED, result)
        self.assertIn("4 pairs did not converge", result.err)
        self.assertEqual(read_vector(self.path("far.npy")).shape, (196, 4))


class Client(EigenTest):
    def test_it_prints_values_and_writes_vectors(self):
        service = self.start("--ranks", 2)
        self.pair(service)
        state = ["--state", service.state]
        said = self.succeed("client", "eigen", "k", "--mass", "m", "--count", 3, "--vectors", "x.npy", *state).out
        found = np.array([float(line.split()[0]) for line in said.splitlines()[:3]])
        np.testing.assert_allclose(found, self.pairs[:3], rtol=1e-7)
        self.assertIn("factors count 3 eigenvalues", said)
        x = read_vector(self.path("x.npy"))
        for j in range(3):
            self.assertLessEqual(np.linalg.norm(self.k @ x[:, j] - found[j] * (self.m @ x[:, j])), 1e-6 * np.linalg.norm(x[:, j]))
        self.assertEqual(self.succeed("client", "jobs", *state).out, "")  # it was fetched
        said = self.succeed("client", "eigen", "k", "--settings", "which=both seed=2", *state).out
        self.assertRegex(said, r"the eigenvectors are vec-\w+; shardmat client cancel job-\w+ forgets them\n$")
        self.assertEqual(len(said.splitlines()), 3)
        self.assertRegex(self.succeed("client", "jobs", *state).out, "done +eigen k, iteration")
        self.fail_with(INPUT, "client", "eigen", "none", *state, says="no matrix none")
        self.fail_with(INPUT, "client", "eigen", "k", "--mass", "none", *state, says="no matrix none")


class Life(EigenTest):
    def test_products_come_in_between_and_it_can_be_ended(self):
        for ranks in (1, 2):
            service = self.start("--ranks", ranks, state=f"state{ranks}")
            self.solvable(service)
            self.solvable(service, "slow", "slow.h5")
            self.pair(service)
            b = self.b(2)[0]
            expected = {name: service.multiply(name, b).body for name in ("grid", "slow")}
            id = self.endless(service)
            self.running(service, id)
            before = self.job(service, id)["iteration"]
            for _ in range(40):
                for name in expected:
                    self.assertEqual(service.multiply(name, b).body, expected[name])
            self.eigen(service, "mass=m&count=2&wait=60")  # another matrix's
            self.eigen(service, "method=power&max_iterations=10&wait=60", "slow", status=422)  # other settings, the same matrix
            service.wait_for("iterations", lambda: self.job(service, id)["iteration"] > before)
            answer = service.ask("DELETE", f"/v1/jobs/{id}")
            self.assertEqual((answer.status, answer.json["state"]), (200, "cancelled"), answer)
            self.assert_problem(service.get(f"/v1/jobs/{id}/x"), 409, "no_result")
            limited = self.ended(service, self.endless(service, "&limit=0.5"))
            self.assertEqual((limited["state"], limited["code"]), ("failed", "time_limit"))
            self.assertEqual(self.vectors(service, limited).shape, (self.grid.shape[0], 1))  # as far as it came
            self.assertEqual(service.terminate(), OK, service.report())

    def test_matrices_that_go_end_their_jobs(self):
        service = self.start("--ranks", 2)
        self.solvable(service)
        self.solvable(service, "mass", "grid_mass.h5")
        query = "mass=mass&count=60&method=lobpcg&tolerance=0&confirm=0"  # takes a second
        for name in ("mass", "grid"):
            id = self.eigen(service, query, "grid", status=202)["id"]
            self.running(service, id)
            self.assertEqual([service.get(f"/v1/matrices/{one}").json["jobs"] for one in ("grid", "mass")], [1, 1])
            self.assertEqual(service.ask("POST", f"/v1/matrices/{name}/unload").status, 200)
            job = self.ended(service, id)
            self.assertEqual((job["state"], job["code"]), ("failed", "no_matrix"))
            self.solvable(service, name, "grid.h5" if name == "grid" else "grid_mass.h5")
        self.assertEqual([service.get(f"/v1/matrices/{one}").json["jobs"] for one in ("grid", "mass")], [0, 0])
        self.assertEqual(service.terminate(), OK, service.report())

    def test_a_lost_rank_is_forgiven_once(self):
        service = self.start("--ranks", 2, "--restart-delay", 0.05)
        self.solvable(service, "slow", "slow.h5")
        id = self.endless(service)
        self.running(service, id)
        os.kill(service.workers()[-1], signal.SIGKILL)
        self.begun_again(service, id)
        os.kill(service.workers()[0], signal.SIGKILL)
        job = self.ended(service, id)
        self.assertEqual((job["state"], job["code"]), ("failed", "rank_lost"))
        service.wait_until_ready()
        self.assertEqual(self.eigen(service, "method=power&max_iterations=10&wait=60", "slow", status=422)["code"], "not_converged")
        self.assertEqual(service.terminate(), OK, service.report())


if __name__ == "__main__":
    unittest.main()
