"""shardmat pagerank against a plain power iteration in SciPy."""

import json
import unittest
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.io
import scipy.sparse as sp

from support import INPUT, USAGE, CliTest, read_vector, write_binsparse, write_vector

NOT_CONVERGED = 7


def pagerank(graph, damping=0.85, v=None, unweighted=False):
    """One column, as NetworkX's pagerank_scipy forms it, until nothing changes."""
    graph = sp.csr_matrix(graph, dtype=float)
    if unweighted:
        graph = sp.csr_matrix((np.ones(graph.nnz), graph.indices, graph.indptr), shape=graph.shape)
    n = graph.shape[0]
    v = np.full(n, 1 / n) if v is None else v / v.sum()
    out = np.asarray(graph.sum(axis=1)).ravel()
    dangling = out == 0
    step = sp.csr_matrix(sp.diags(np.divide(1, out, out=np.zeros(n), where=~dangling)) @ graph).T.tocsr()
    p = v.copy()
    for _ in range(5000):
        new = damping * (step @ p + p[dangling].sum() * v) + (1 - damping) * v
        if np.abs(new - p).sum() < 1e-15:
            break
        p = new
    return new


def random_graph(n, density, seed, dangling=0):
    """Weights in (0, 10); the last `dangling` vertices have no outgoing edges."""
    graph = sp.random(n, n, density=density, random_state=seed, format="lil")
    graph[n - dangling:] = 0
    return sp.csr_matrix(graph) * 10


def two_components():
    return sp.csr_matrix(sp.block_diag([random_graph(40, 0.2, 1), random_graph(25, 0.1, 2, dangling=3)]))


def power_law(n):
    """A hub that most vertices point to, and a chain."""
    rows = np.arange(1, n)
    graph = sp.coo_matrix((np.ones(2 * (n - 1)), (np.r_[rows, rows], np.r_[np.zeros(n - 1, int), rows - 1])), shape=(n, n))
    return sp.csr_matrix(graph)


GRAPHS = {
    "weighted": random_graph(120, 0.05, 3),
    "dangling": random_graph(90, 0.06, 4, dangling=20),
    "components": two_components(),
    "hub": power_law(70),
    "cycle": sp.csr_matrix(np.roll(np.eye(12), 1, axis=1)),
    "loops": sp.csr_matrix(np.diag([1.0, 2.0, 0.0]) + np.eye(3, k=1)),
    "no edges": sp.csr_matrix((5, 5)),
    "one vertex": sp.csr_matrix((1, 1)),
    "one loop": sp.csr_matrix([[3.0]]),
}


class PageRank(CliTest):
    def setUp(self):
        super().setUp()
        self.runs = 0
        self.two_at_a_time = ThreadPoolExecutor(2)  # a start of MPI mostly waits
        self.addCleanup(self.two_at_a_time.shutdown)

    def start(self, graph, *options, ranks=0, code=0):
        """A future of what scores() returns."""
        self.runs += 1
        output, report = f"scores{self.runs}.npy", f"report{self.runs}.json"
        name = graph if isinstance(graph, str) else write_binsparse(self.path(f"graph{self.runs}.h5"), graph)

        def run():
            result = self.call("pagerank", name, "--output", output, "--json", report, *options, ranks=ranks)
            self.assertEqual(result.code, code, result)
            return read_vector(self.path(output)), json.loads(self.path(report).read_text())

        return self.two_at_a_time.submit(run)

    def scores(self, graph, *options, **more):
        """The scores and the report."""
        return self.start(graph, *options, **more).result()

    def assert_scores(self, found, expected, report, damping=0.85, type="f64"):
        residual = sum(column["residual"] for column in report["columns"])
        rounding = 1e-13 if type == "f64" else 2e-6
        self.assertLessEqual(np.abs(found - expected).sum(), 1.01 * damping / (1 - damping) * residual + rounding * found.ndim)
        self.assertTrue(report["converged"])

    def test_scores_of_scipy(self):
        cases = [(name, "f64", (1, 1, 2, 1, 1, 1, 3, 1, 1)[number]) for number, name in enumerate(GRAPHS)]
        cases += [("weighted", "f32", 2), ("components", "f32", 1)]
        starts = [self.start(GRAPHS[name], "--type", type, ranks=ranks if ranks > 1 else 0) for name, type, ranks in cases]
        for (name, type, ranks), start in zip(cases, starts):
            with self.subTest(name, type=type, ranks=ranks):
                graph = GRAPHS[name]
                found, report = start.result()
                self.assert_scores(found, pagerank(graph), report, type=type)
                self.assertAlmostEqual(found.sum(), 1, delta=1e-13 if type == "f64" else 1e-6)
                self.assertEqual(report["dangling"], int((np.asarray(graph.sum(axis=1)) == 0).sum()))
                self.assertLessEqual(report["columns"][0]["residual"], 1e-10 if type == "f64" else 1e-6)

    def test_every_number_of_ranks_and_more_ranks_than_vertices(self):
        for name, ranks, method in (("dangling", 2, "nnz"), ("dangling", 3, "rows"), ("loops", 4, "nnz")):
            found, report = self.scores(GRAPHS[name], "--method", method, ranks=ranks)
            self.assert_scores(found, pagerank(GRAPHS[name]), report)

    def test_damping(self):
        graph = GRAPHS["components"]
        starts = [self.start(graph, "--damping", damping) for damping in (0, 0.99)]
        for damping, start in zip((0, 0.99), starts):
            found, report = start.result()
            self.assert_scores(found, pagerank(graph, damping), report, damping)

    def test_many_seeds_are_columns(self):
        graph, seeds = GRAPHS["components"], [0, 64, 7, 39, 40, 7, 63]
        n = graph.shape[0]
        expected = np.column_stack([pagerank(graph, v=np.eye(n)[seed]) for seed in seeds])
        text = "# seeds\n0 64, 7\n39\n\n40 7 # twice\n63\n"
        self.write("seeds.txt", text)
        for seeds_option, type, ranks in (("seeds.txt", "f64", 3), ("0, 64,7,39,40,7,63", "f32", 2)):
            with self.subTest(seeds_option, type=type, ranks=ranks):
                found, report = self.scores(graph, "--seeds", seeds_option, "--type", type, ranks=ranks)
                self.assertEqual(found.shape, (n, len(seeds)))
                self.assert_scores(found, expected, report, type=type)
                self.assertEqual([c["seed"] for c in report["columns"]], seeds)
                np.testing.assert_array_less(found[:40, 1], 1e-30)  # the other component is not reached
        found, report = self.scores(graph, "--seeds", "64", ranks=2)
        self.assertEqual(found.shape, (n,))
        self.assert_scores(found, expected[:, 1], report)

    def test_every_column_converges_in_its_own_time(self):
        graph = sp.block_diag([sp.csr_matrix([[1.0]]), GRAPHS["cycle"]])  # vertex 0 is done at once
        _, report = self.scores(sp.csr_matrix(graph), "--seeds", "0,5")
        quick, slow = report["columns"]
        self.assertLessEqual(quick["iterations"], 2)
        self.assertGreater(slow["iterations"], 50)
        self.assertEqual(report["iterations"], slow["iterations"])
        self.assertEqual(len(quick["history"]), report["iterations"])

    def test_weights_of_restarts(self):
        graph = GRAPHS["weighted"]
        v = np.abs(np.random.default_rng(5).standard_normal((graph.shape[0], 3)))
        v[v < 0.5] = 0
        expected = np.column_stack([pagerank(graph, v=column) for column in v.T])
        for name in ("v.npy", "v.h5", "one.npy"):
            write_vector(self.path(name), v[:, 0] if name == "one.npy" else v, "seeds")
        starts = [self.start(graph, "--seeds", name, "--rhs", 3) for name in ("v.npy", "v.h5")]
        starts.append(self.start(graph, "--seeds", "one.npy"))
        for start, columns in zip(starts, (expected, expected, expected[:, 0])):
            found, report = start.result()
            self.assert_scores(found, columns, report)

    def test_unweighted(self):
        graph = random_graph(60, 0.1, 6, dangling=5)
        graph.data[::3] *= -1  # values do not count
        graph.data[::7] = np.nan
        found, report = self.scores(graph, "--unweighted")
        self.assert_scores(found, pagerank(graph, unweighted=True), report)

    def test_every_kind_of_file(self):
        graph = GRAPHS["dangling"]
        expected = np.column_stack([pagerank(graph, v=np.eye(90)[seed]) for seed in (5, 80)])
        scipy.io.mmwrite(str(self.path("g.mtx")), graph)
        sp.save_npz(str(self.path("g.npz")), graph)
        write_binsparse(self.path("g.h5"), graph)
        self.succeed("partition", "g.mtx", "rcm.h5", "--parts", "2", "--reorder", "rcm")
        cases = [("g.mtx", 3, "auto"), ("g.npz", 0, "local"), ("rcm.h5", 0, "auto"), ("rcm.h5", 3, "auto")]
        starts = [self.start(name, "--seeds", "5,80", "--sort", sort, ranks=ranks) for name, ranks, sort in cases]
        for (name, ranks, _), start in zip(cases, starts):
            with self.subTest(name, ranks=ranks):
                found, report = start.result()
                self.assert_scores(found, expected, report)
                self.assertEqual((report["matrix"]["name"], report["matrix"]["nnz"]), (name, graph.nnz))

    def test_large_and_small_weights(self):
        for start in [self.start(sp.csr_matrix(GRAPHS["loops"] * scale)) for scale in (0.8e308, 1e-300)]:  # a row sums to 2.4e308
            found, report = start.result()
            self.assert_scores(found, pagerank(GRAPHS["loops"]), report)

    def test_no_vertices(self):
        self.write("empty.mtx", "%%MatrixMarket matrix coordinate real general\n0 0 0\n")
        found, report = self.scores("empty.mtx", ranks=2)
        self.assertEqual((found.size, report["converged"], report["columns"][0]["top"]), (0, True, []))

    def test_highest_scores(self):
        graph = GRAPHS["dangling"]
        expected = pagerank(graph)
        order = sorted(range(graph.shape[0]), key=lambda i: (-expected[i], i))
        _, report = self.scores(graph, "--top", 7, ranks=3)
        top = report["columns"][0]["top"]
        self.assertEqual([entry["vertex"] for entry in top], order[:7])
        np.testing.assert_allclose([entry["score"] for entry in top], expected[order[:7]], atol=1e-9)
        text = self.succeed("pagerank", "graph1.h5", "--top", 2).out
        self.assertRegex(text.replace("\n", " "), rf"1 +{order[0]} .* 2 +{order[1]} ")
        many, none = self.start(GRAPHS["loops"], "--top", 99), self.start(graph, "--top", 0)
        self.assertEqual(len(many.result()[1]["columns"][0]["top"]), 3)
        self.assertEqual(none.result()[1]["columns"][0]["top"], [])

    def test_what_did_not_converge_is_said_and_written(self):
        graph = GRAPHS["cycle"]
        found, report = self.scores(graph, "--seeds", "0", "--max-iterations", 5, ranks=2, code=NOT_CONVERGED)
        self.assertFalse(report["converged"])
        self.assertEqual((report["iterations"], report["columns"][0]["iterations"]), (5, 5))
        expected = np.eye(12)[0]
        for _ in range(5):
            expected = 0.85 * (graph.T @ expected) + 0.15 * np.eye(12)[0]
        np.testing.assert_allclose(found, expected, atol=1e-15)
        found, report = self.scores(graph, "--seeds", "0", "--max-iterations", 0, code=NOT_CONVERGED)
        np.testing.assert_allclose(found, np.eye(12)[0])

    def test_prints_changes(self):
        result = self.succeed("pagerank", write_binsparse(self.path("g.h5"), GRAPHS["cycle"]), "--seeds", "0,1", "--monitor")
        lines = [line.split() for line in result.err.splitlines() if line.strip()[:1].isdigit()]
        self.assertGreater(len(lines), 50)
        self.assertEqual([int(line[0]) for line in lines], list(range(1, len(lines) + 1)))
        self.assertLess(max(float(x) for x in lines[-1][1:]), 1e-10)

    def test_refuses(self):
        write_binsparse(self.path("wide.h5"), sp.csr_matrix(np.ones((2, 3))))
        write_binsparse(self.path("g.h5"), GRAPHS["loops"])
        negative = sp.lil_matrix(GRAPHS["hub"])
        negative[33, 32] = -2.5
        write_binsparse(self.path("negative.h5"), negative)
        bad = sp.lil_matrix(GRAPHS["hub"])
        bad[50, 1] = np.nan
        write_binsparse(self.path("nan.h5"), bad)
        write_vector(self.path("short.npy"), np.ones(2))
        write_vector(self.path("minus.npy"), np.array([1.0, -1.0, 1.0]))
        write_vector(self.path("zero.npy"), np.zeros(3))
        write_vector(self.path("nanv.npy"), np.array([1.0, np.nan, 1.0]))
        self.write("bad.txt", "1\n2 x\n")
        self.write("far.txt", "1\n7\n")
        out = ["--output", "scores.npy", "--json", "report.json"]
        self.fail_with(USAGE, "pagerank", "wide.h5", *out, says=["2 × 3", "square"])
        self.fail_on_every_rank(INPUT, "pagerank", "negative.h5", *out, ranks=2, says=["from vertex 33 to vertex 32", "-2.5", "--unweighted"])
        self.fail_with(INPUT, "pagerank", "nan.h5", *out, says=["nan.h5", "row 50"])
        self.fail_on_every_rank(USAGE, "pagerank", "g.h5", *out, "--seeds", "1,3", ranks=2, says=["vertex 3", "0 … 2", "--seeds"])
        self.fail_with(INPUT, "pagerank", "g.h5", *out, "--seeds", "bad.txt", says=["bad.txt, line 2", '"x"'])
        self.fail_with(INPUT, "pagerank", "g.h5", *out, "--seeds", "minus.npy", says=["minus.npy", "row 1", "-1"])
        before, cases = self.files(), []
        for code, options, says in (
                (USAGE, ["--seeds", "-1"], ["vertex -1", "0 … 2"]), (USAGE, ["--seeds", "1,,2"], ['""', "3,17,42"]),
                (USAGE, ["--seeds", ""], "--seeds"), (INPUT, ["--seeds", "far.txt"], ["far.txt", "vertex 7"]),
                (INPUT, ["--seeds", "short.npy"], ["short.npy", "3"]),
                (INPUT, ["--seeds", "zero.npy"], ["sums to 0", "--seeds"]), (INPUT, ["--seeds", "nanv.npy"], ["nanv.npy", "entry 1"]),
                (INPUT, ["--seeds", "shrt.npy"], "short.npy"), (USAGE, ["--rhs", 2], ["--rhs"]),
                (USAGE, ["--damping", 1], ["less than 1", "--damping"]), (USAGE, ["--tolerance", -1], "--tolerance"),
                (USAGE, ["--method", "nzz"], ["nnz", "--method"])):
            cases.append((code, options, says, self.two_at_a_time.submit(self.call, "pagerank", "g.h5", *out, *options)))
        for code, options, says, start in cases:
            with self.subTest(options=options):
                result = start.result()
                self.assertEqual((result.code, len(result.messages)), (code, 1), result)
                for text in [says] if isinstance(says, str) else says:
                    self.assertIn(text, result.messages[0])
        self.assertEqual(self.files(), before)
        self.fail_with(USAGE, "pagerank", "g.h5", "--output", "g.h5", says="g.h5")

    def test_ends_early_on_a_signal(self):
        n = 1000  # a walk around one cycle never settles; a random graph's scores may stop changing at all
        self.write("cycle.mtx", f"%%MatrixMarket matrix coordinate real general\n{n} {n} {n}\n" + "".join(f"{i + 1} {(i + 1) % n + 1} 1\n" for i in range(n)))
        code, out = self.interrupted("pagerank", "cycle.mtx", "--seeds", 0, "--damping", "0.99999999", "--tolerance", 0, "--max-iterations", 10**9,
                                     "--output", "p.npy")
        self.assertEqual(code, 7, out)
        self.assertIn("interrupted", out)
        self.assertAlmostEqual(read_vector(self.path("p.npy"), "scores").sum(), 1)


if __name__ == "__main__":
    unittest.main()
