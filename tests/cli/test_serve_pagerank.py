"""Jobs that rank the vertices of a graph: POST /v1/matrices/NAME/pagerank."""

import json
import os
import signal
import unittest

import numpy as np

from support import BACKEND, INPUT, OK, USAGE, read_vector, write_binsparse, write_vector
from test_pagerank import pagerank, random_graph
from test_serve import NAMES
from test_serve_solve import SolveTest

SLOW = "damping=0.999999&tolerance=1e-300&max_iterations=1000000000"


class PageRankTest(SolveTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.graph = random_graph(500, 0.02, 5, dangling=30)
        write_binsparse(cls.library / "graph.h5", cls.graph)
        cls.v = np.random.default_rng(2).uniform(0, 1, (3, 500))

    def rank(self, service, query="", b=b"", name="graph", status=200, **fields):
        answer = service.ask("POST", f"/v1/matrices/{name}/pagerank" + ("?" + query if query else ""), b if isinstance(b, (bytes, str)) else b.tobytes(),
                             **fields)
        self.assertEqual(answer.status, status, answer)
        return answer

    def of_command(self, ranks, type, *options):
        """The scores and the report of `shardmat pagerank`."""
        self.succeed("pagerank", self.library / "graph.h5", "--output", "p.npy", "--json", "p.json", "--force", "--type", type, "--backend", BACKEND,
                     "--reproducible", "--same-bits", "--overlap", "--no-measure", *options, ranks=ranks)
        return read_vector(self.path("p.npy")), json.loads(self.path("p.json").read_text())


class Answers(PageRankTest):
    def test_scores_have_the_bits_of_the_command(self):
        whole = self.graph.copy()
        whole.data = np.ceil(whole.data)  # weights that f32 holds
        for ranks in (1, 2, 3):
            service = self.start("--ranks", ranks, state=f"state{ranks}")
            for type, graph in (("f64", self.graph), ("f32", whole)):
                write_binsparse(self.library / "graph.h5", graph)
                self.solvable(service, "graph", "graph.h5", type=type)
                write_vector(self.path("v.npy"), self.v.T.astype(NAMES[type]))
                write_vector(self.path("v1.npy"), self.v[0].astype(NAMES[type]))
                for query, b, columns, options, expected in (
                        ("damping=0.7", b"", 1, ("--damping", 0.7), [pagerank(graph, 0.7)]),
                        ("unweighted=1", b"", 1, ("--unweighted",), [pagerank(graph, unweighted=True)]),
                        ("tolerance=1e-5", self.v[0], 1, ("--seeds", "v1.npy", "--tolerance", 1e-5), [pagerank(graph, v=self.v[0])]),
                        ("k=3", self.v, 3, ("--seeds", "v.npy", "--rhs", 3), [pagerank(graph, v=v) for v in self.v])):
                    with self.subTest(ranks=ranks, type=type, query=query):
                        answer = self.rank(service, query + "&wait=60&keep=1", b if isinstance(b, bytes) else b.astype(NAMES[type]))
                        x = np.frombuffer(answer.body, NAMES[type]).reshape(columns, -1)
                        np.testing.assert_allclose(x, expected, rtol=0, atol=1e-5 if type == "f32" or "tolerance" in query else 1e-9)
                        p, report = self.of_command(ranks, type, *options)
                        if BACKEND == "host":
                            self.assertEqual(answer.body, p.astype(NAMES[type]).tobytes(order="F"))
                            self.assertEqual(answer.headers["Shardmat-Iterations"], str(max(c["iterations"] for c in report["columns"])))
                        job = self.job(service, answer.headers["Shardmat-Job"])
                        self.assertEqual((job["kind"], job["state"], job["dangling"], job["columns"]), ("pagerank", "done", report["dangling"], columns))
                        if BACKEND == "host":
                            self.assertEqual([c["residual"] for c in job["result"]], [c["residual"] for c in report["columns"]])
                        self.assertEqual(service.get(f"/v1/vectors/{job['x']}").body, answer.body)
                        self.assertEqual(service.ask("DELETE", f"/v1/jobs/{job['id']}").status, 204)
                self.assertEqual(service.ask("POST", "/v1/matrices/graph/unload").status, 200)
            self.assertEqual(service.get("/v1/ranks").json["arena"]["used"], 0)
            self.assertEqual(service.terminate(), OK, service.report())
        write_binsparse(self.library / "graph.h5", self.graph)

    def test_vectors_json_and_new_values(self):
        service = self.start("--ranks", 2)
        self.solvable(service, "graph", "graph.h5", updatable=True)
        plain = self.rank(service, "k=3&wait=60", self.v)
        vector = service.ask("POST", "/v1/vectors", json.dumps({"matrix": "graph", "columns": 3})).json["id"]
        self.assertEqual(service.ask("PUT", f"/v1/vectors/{vector}", self.v.tobytes()).status, 204)
        for answer in (self.rank(service, f"b={vector}&wait=60"),
                       self.rank(service, b=json.dumps({"b": vector, "wait": 60}), Content_Type="application/json")):
            self.assertEqual(answer.body, plain.body)
        uniform = self.rank(service, "wait=60")
        self.assertEqual(self.rank(service, b='{"wait": 60}', Content_Type="application/json").body, uniform.body)
        changed = self.graph.copy()
        changed.data = np.random.default_rng(3).uniform(0, 1, changed.nnz)
        self.assertEqual(service.ask("PUT", "/v1/matrices/graph/values", changed.data.tobytes()).status, 200)
        answer = self.rank(service, "wait=60")
        np.testing.assert_allclose(np.frombuffer(answer.body), pagerank(changed), rtol=0, atol=1e-9)
        self.assertNotEqual(answer.body, uniform.body)
        values = changed.data.copy()
        values[17] = -1
        self.assertEqual(service.ask("PUT", "/v1/matrices/graph/values", values.tobytes()).status, 200)
        row = int(np.searchsorted(changed.indptr, 17, "right")) - 1
        self.assert_problem(self.rank(service, "wait=60", status=422), 422, "bad_job", f"from vertex {row} to vertex {changed.indices[17]} has the weight -1")
        self.assertEqual(service.terminate(), OK, service.report())

    def test_wrong_requests(self):
        service = self.start("--ranks", 2)
        self.solvable(service, "graph", "graph.h5")
        self.loaded(service)

        def refused(query, status, code, says="", name="graph", b=b"", **fields):
            self.assert_problem(self.rank(service, query, b, name, status, **fields), status, code, says)

        refused("", 404, "no_matrix", name="none")
        refused("", 409, "not_solvable", name="bar")
        refused("b=vec-1", 404, "no_vector")
        refused("", 422, "wrong_length", "4000", b=b"12345678")
        refused("type=f32", 422, "wrong_type")
        for query, says in (("method=power", "there is no parameter"), ("x0=vec-1", '"x0"'), ("alone=1", '"alone"'), ("k=2", "needs a b"), ("wait=x", "seconds")):
            refused(query, 400, "malformed", says)
        refused("", 400, "malformed", "JSON", b="[", Content_Type="application/json")
        for query, says in (("damping=1", "damping"), ("damping=x", "damping"), ("tolerance=-1", "tolerance"), ("max_iterations=1.5", "max_iterations"),
                            ("unweighted=yes", "0 or 1")):
            refused(query + "&wait=60", 422, "bad_job", says)
        bad = self.v[0].copy()
        bad[7] = -1
        refused("wait=60", 422, "bad_job", "weights of 0 or more", b=bad)
        answer = self.rank(service, "max_iterations=3&wait=60", status=422)
        self.assert_problem(answer, 422, "not_converged", "allow more iterations")
        job = self.job(service, answer.headers["Shardmat-Job"])
        self.assertEqual((job["state"], job["iteration"], job["result"][0]["converged"]), ("failed", 3, False))
        self.assertAlmostEqual(np.frombuffer(service.get(f"/v1/jobs/{job['id']}/x").body).sum(), 1, 12)  # as far as it came
        self.assertEqual(service.terminate(), OK, service.report())


class Client(PageRankTest):
    def test_it_writes_scores(self):
        service = self.start("--ranks", 2)
        self.solvable(service, "graph", "graph.h5")
        state = ["--state", service.state]
        said = self.succeed("client", "pagerank", "graph", "p.npy", "--damping", 0.7, "--settings", "tolerance=1e-12", *state).out
        self.assertRegex(said, r"^\d+ iterations, residual \S+\n$")
        np.testing.assert_allclose(read_vector(self.path("p.npy")), pagerank(self.graph, 0.7), rtol=0, atol=1e-10)
        write_vector(self.path("v.npy"), self.v.T)
        self.succeed("client", "pagerank", "graph", "p3.npy", "--restarts", "v.npy", "--rhs", 3, *state)
        np.testing.assert_allclose(read_vector(self.path("p3.npy")), np.array([pagerank(self.graph, v=v) for v in self.v]).T, rtol=0, atol=1e-9)
        self.fail_with(INPUT, "client", "pagerank", "none", "p.npy", *state, says="no matrix none")
        self.fail_with(USAGE, "client", "pagerank", "graph", "p.npy", "--rhs", 2, *state, says="restarts")


class Life(PageRankTest):
    def test_products_come_in_between_and_it_can_be_ended(self):
        for ranks in (1, 2):
            service = self.start("--ranks", ranks, state=f"state{ranks}")
            self.solvable(service, "graph", "graph.h5")
            x = self.v[0]
            expected = service.multiply("graph", x).body
            id = self.rank(service, SLOW, status=202).json["id"]
            self.running(service, id)
            before = self.job(service, id)["iteration"]
            for _ in range(40):
                self.assertEqual(service.multiply("graph", x).body, expected)
            service.wait_for("iterations", lambda: self.job(service, id)["iteration"] > before)
            self.assertGreater(len(self.job(service, id)["history"]), 1)
            answer = service.ask("DELETE", f"/v1/jobs/{id}")
            self.assertEqual((answer.status, answer.json["state"]), (200, "cancelled"), answer)
            limited = self.ended(service, self.rank(service, SLOW + "&limit=0.5", status=202).json["id"])
            self.assertEqual((limited["state"], limited["code"]), ("failed", "time_limit"))
            self.assertAlmostEqual(np.frombuffer(service.get(f"/v1/jobs/{limited['id']}/x").body).sum(), 1, 9)
            self.assertEqual(service.terminate(), OK, service.report())

    def test_a_lost_rank_is_forgiven_once(self):
        service = self.start("--ranks", 2, "--restart-delay", 0.05)
        self.solvable(service, "graph", "graph.h5")
        id = self.rank(service, SLOW, self.v[0], status=202).json["id"]
        self.running(service, id)
        os.kill(service.workers()[-1], signal.SIGKILL)
        self.begun_again(service, id)
        os.kill(service.workers()[0], signal.SIGKILL)
        job = self.ended(service, id)
        self.assertEqual((job["state"], job["code"]), ("failed", "rank_lost"))
        service.wait_until_ready()
        np.testing.assert_allclose(np.frombuffer(self.rank(service, "wait=60").body), pagerank(self.graph), rtol=0, atol=1e-9)
        self.assertEqual(service.terminate(), OK, service.report())


if __name__ == "__main__":
    unittest.main()
