"""shardmat eigen against NumPy's dense and SciPy's sparse solvers."""

import json
import unittest
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

from support import DATA, INPUT, USAGE, CliTest, fem_matrix, read_binsparse, read_vector, write_binsparse

NOT_CONVERGED = 7


def laplacian(n):
    """Most of its eigenvalues are double."""
    one = sp.diags([-1, 2, -1], [-1, 0, 1], shape=(n, n))
    return sp.csr_matrix(sp.kronsum(one, one))


def indefinite(n):
    a = sp.random(n, n, density=0.05, random_state=1, data_rvs=np.random.default_rng(2).standard_normal)
    return sp.csr_matrix(a + a.T)


def permuted_diagonal(values):
    return sp.csr_matrix(sp.diags(np.random.default_rng(3).permutation(values)))


SYMMETRIC = {
    "laplacian": laplacian(12),
    "indefinite": indefinite(200),
    "multiple": permuted_diagonal(np.repeat(np.arange(-20.0, 20.0), 4)),
    "four copies": permuted_diagonal(np.r_[np.full(4, 9.0), np.linspace(-1, 1, 150), np.full(3, -2.0)]),
    "scales": permuted_diagonal(np.r_[-np.logspace(-8, 6, 30), np.logspace(-8, 6, 35)]),
    "identity": sp.csr_matrix(sp.identity(60)),
    "bar": fem_matrix("elasticity_bar"),
    "two rows": sp.csr_matrix([[1.0, 2.0], [2.0, -3.0]]),
}


class Eigen(CliTest):
    def setUp(self):
        super().setUp()
        self.runs = 0
        self.two_at_a_time = ThreadPoolExecutor(2)  # a start of MPI mostly waits
        self.addCleanup(self.two_at_a_time.shutdown)

    def start(self, matrix, *options, ranks=0, code=0):
        """A future of what eigen() returns."""
        self.runs += 1
        output, report = f"v{self.runs}.npy", f"report{self.runs}.json"
        name = matrix if isinstance(matrix, str) else write_binsparse(self.path(f"a{self.runs}.h5"), matrix)

        def run():
            result = self.call("eigen", name, "--vectors", output, "--json", report, *options, ranks=ranks)
            self.assertEqual(result.code, code, result)
            told = json.loads(self.path(report).read_text())
            vectors = read_vector(self.path(output))
            return np.array([pair["value"] for pair in told["pairs"]]), vectors.reshape(len(vectors), -1).astype(float), told

        return self.two_at_a_time.submit(run)

    def eigen(self, matrix, *options, **more):
        """Values, vectors (a column each) and the report."""
        return self.start(matrix, *options, **more).result()

    def assert_pairs(self, matrix, found, expected, type="f64"):
        values, vectors, report = found
        size = np.abs(expected).max()
        tolerance, rounding = (1e-10, 1e-13) if type == "f64" else (1e-5, 3e-6)
        residuals = np.linalg.norm(matrix @ vectors - vectors * values, axis=0)
        told = np.array([pair["residual"] for pair in report["pairs"]])
        norm = max(size, report["norm"])
        self.assertLessEqual(residuals.max(), (tolerance + 10 * rounding) * norm)
        np.testing.assert_allclose(told, residuals, atol=10 * rounding * norm, rtol=0.1)
        np.testing.assert_allclose(values, expected, rtol=0, atol=(2 * tolerance + rounding) * norm)  # an error of the residual at most
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(values)), atol=1e-9 if type == "f64" else 1e-4)
        self.assertTrue(report["converged"])

    def test_ends_of_spectra(self):
        cases = []
        for number, (name, matrix) in enumerate(SYMMETRIC.items()):
            count = min(7, matrix.shape[0] // 2)
            for which, type in ((("both", "f64"),), (("largest", "f64"), ("smallest", "f32")))[number % 2]:
                options = ["--count", count, "--which", which, "--type", type]
                cases.append((name, count, which, type, self.start(matrix, *options, ranks=(0, 0, 2, 0, 0, 3, 0, 0)[number])))
        for name, count, which, type, start in cases:
            with self.subTest(name, which=which, type=type):
                spectrum = np.linalg.eigvalsh(SYMMETRIC[name].toarray())
                expected = {"largest": spectrum[-count:], "smallest": spectrum[:count],
                            "both": np.r_[spectrum[:count], spectrum[-count:]]}[which]
                self.assert_pairs(SYMMETRIC[name], start.result(), expected, type)
                self.assertTrue(start.result()[2]["confirmed"])

    def test_finite_elements_of_generators(self):
        for spec, options, ranks in (("elasticity:n=5,clamp=0.05", ["--n", 5, "--clamp", 0.05], 3), ("poisson:n=20", ["--n", 20], 2)):
            name = spec.split(":")[0]
            self.succeed("generate", name, *options, "m.h5", "--force")
            matrix = read_binsparse(self.path("m.h5"))[1]
            high = scipy.sparse.linalg.eigsh(matrix, 4, which="LA", tol=1e-12)[0]
            low = scipy.sparse.linalg.eigsh(matrix, 4, sigma=-0.01, tol=1e-12)[0]
            with self.subTest(spec):
                found = self.eigen(spec, "--count", 4, "--which", "both", ranks=ranks)
                self.assert_pairs(matrix, found, np.sort(np.r_[low, high]))

    def test_every_number_of_ranks(self):
        matrix = SYMMETRIC["indefinite"]
        spectrum = np.linalg.eigvalsh(matrix.toarray())
        one = self.eigen(matrix, "--count", 3, "--basis", 12)
        self.assertGreater(one[2]["restarts"], 3)
        for ranks in (2, 3):
            found = self.eigen(matrix, "--count", 3, "--basis", 12, ranks=ranks)
            self.assert_pairs(matrix, found, spectrum[-3:])
            np.testing.assert_allclose(np.abs(np.sum(found[1] * one[1], axis=0)), 1, atol=1e-9)
        self.assert_pairs(SYMMETRIC["two rows"], self.eigen(SYMMETRIC["two rows"], "--which", "both", ranks=3),
                          np.linalg.eigvalsh(SYMMETRIC["two rows"].toarray()))

    def test_all_eigenvalues_of_small_matrices(self):
        small = laplacian(4)
        self.assert_pairs(small, self.eigen(small, "--count", 9, "--which", "both"), np.linalg.eigvalsh(small.toarray()))
        one = sp.csr_matrix([[-3.0]])
        for start in [self.start(one, *options) for options in (["--method", "power"], ["--which", "both", "--type", "f32"])]:
            self.assert_pairs(one, start.result(), [-3.0])
        zero = sp.csr_matrix((5, 5))
        values, _, report = self.eigen(zero, "--count", 3)
        np.testing.assert_array_equal(values, [0, 0, 0])
        self.assertTrue(report["converged"])
        self.assertEqual(self.eigen(zero, "--method", "power")[0], [0])

    def test_without_confirming_it_says_so(self):
        values, _, report = self.eigen(SYMMETRIC["laplacian"], "--count", 2, "--no-confirm")
        self.assertEqual((report["confirmed"], report["converged"]), (False, True))
        self.assertIn("not checked", self.succeed("eigen", "a1.h5", "--no-confirm").out)

    def test_reordered_files_give_vectors_in_the_original_order(self):
        matrix = SYMMETRIC["bar"]
        expected = np.linalg.eigvalsh(matrix.toarray())[-2:]
        self.succeed("partition", DATA / "elasticity_bar.mtx.gz", "rcm.h5", "--parts", 2, "--reorder", "rcm")
        self.assert_pairs(matrix, self.eigen("rcm.h5", "--count", 2, "--sort", "local", ranks=2), expected)

    def test_power(self):
        positive = sp.csr_matrix(sp.random(80, 80, density=0.1, random_state=2) + sp.diags(np.linspace(0, 4, 80)))
        shifted = sp.csr_matrix(laplacian(8) - 20 * sp.identity(64))
        triangle = sp.csr_matrix(np.triu(np.random.default_rng(4).standard_normal((30, 30))) + np.diag(np.arange(0, -60, -2)))
        nilpotent = sp.csr_matrix(np.eye(3, k=1))
        cases = [("positive", positive, 3, "f64"), ("positive", positive, 0, "f32"), ("negative", shifted, 0, "f64"),
                 ("triangle", triangle, 0, "f64"), ("nilpotent", nilpotent, 0, "f64")]
        starts = [self.start(matrix, "--method", "power", "--type", type, ranks=ranks) for _, matrix, ranks, type in cases]
        for (name, matrix, _, type), start in zip(cases, starts):
            with self.subTest(name, type=type):
                values, vectors, report = start.result()
                every = np.linalg.eigvals(matrix.toarray())
                dominant = every[np.abs(every).argmax()].real
                if name == "positive":
                    self.assertAlmostEqual(dominant, scipy.sparse.linalg.eigs(matrix, k=1, which="LM")[0][0].real, delta=1e-9)
                self.assertAlmostEqual(values[0], dominant, delta=(1e-8 if type == "f64" else 3e-4) * abs(dominant))
                residual = np.linalg.norm(matrix @ vectors[:, 0] - values[0] * vectors[:, 0])
                self.assertLessEqual(residual, 1.1 * (1e-10 if type == "f64" else 1e-5) * abs(values[0]))
                self.assertTrue(report["converged"])

    def test_what_did_not_converge_is_said_and_written(self):
        turn = sp.csr_matrix([[0.0, -1.0], [1.0, 0.0]])
        opposite = permuted_diagonal([5.0, -5.0, 1.0])
        few = ["--method", "power", "--max-iterations", 200]
        starts = [self.start(turn, *few, code=NOT_CONVERGED), self.start(opposite, *few, code=NOT_CONVERGED),
                  self.start(laplacian(30), "--count", 3, "--which", "smallest", "--max-iterations", 60, code=NOT_CONVERGED),
                  self.start(laplacian(5), "--type", "f32", "--tolerance", 1e-14, "--max-iterations", 300, code=NOT_CONVERGED)]
        for start in starts[:2]:
            values, _, report = start.result()
            self.assertEqual((report["converged"], report["iterations"]), (False, 200))
        values, vectors, report = starts[2].result()
        self.assertEqual((report["iterations"], len(values), vectors.shape), (60, 3, (900, 3)))
        residuals = np.linalg.norm(laplacian(30) @ vectors - vectors * values, axis=0)
        np.testing.assert_allclose([pair["residual"] for pair in report["pairs"]], residuals, rtol=1e-6)
        self.assertFalse(starts[3].result()[2]["pairs"][0]["converged"])

    def test_prints_values(self):
        for options in (["--basis", 8], ["--method", "power", "--tolerance", 1e-4]):
            result = self.succeed("eigen", "poisson:n=4", "--monitor", *options)
            lines = [line.split() for line in result.err.splitlines() if line.strip()[:1].isdigit()]
            self.assertGreater(len(lines), 3)
            self.assertLess(float(lines[-1][2]), 1e-3)

    def test_refuses(self):
        write_binsparse(self.path("wide.h5"), sp.csr_matrix(np.ones((2, 3))))
        write_binsparse(self.path("c.h5"), fem_matrix("convection"))
        write_binsparse(self.path("a.h5"), laplacian(3))
        write_binsparse(self.path("large.h5"), sp.csr_matrix(laplacian(3) * 1e200))
        self.write("empty.mtx", "%%MatrixMarket matrix coordinate real general\n0 0 0\n")
        out = ["--vectors", "v.npy", "--json", "report.json"]
        self.fail_on_every_rank(USAGE, "eigen", "c.h5", *out, ranks=2, says=["not", "power", "--method"])
        self.fail_with(INPUT, "eigen", "large.h5", *out, says=["scale", "range"])
        before, cases = self.files(), []
        for code, options, says in (
                (USAGE, ["wide.h5"], ["2 × 3", "square"]), (INPUT, ["empty.mtx"], ["empty.mtx", "no rows"]),
                (INPUT, ["large.h5", "--method", "power"], "scale"), (USAGE, ["a.h5", "--count", 10], ["1 … 9", "--count"]),
                (USAGE, ["a.h5", "--count", 2, "--basis", 4], ["5 …", "--basis"]),
                (USAGE, ["a.h5", "--method", "power", "--count", 2], ["lanczos", "--count"]),
                (USAGE, ["a.h5", "--method", "power", "--which", "smallest"], ["lanczos", "--which"]),
                (USAGE, ["a.h5", "--method", "power", "--basis", 9], "--basis"),
                (USAGE, ["a.h5", "--partition", "nzz"], ["nnz", "--partition"])):
            cases.append((code, options, says, self.two_at_a_time.submit(self.call, "eigen", *options, *out)))
        for code, options, says, start in cases:
            with self.subTest(options=options):
                result = start.result()
                self.assertEqual((result.code, len(result.messages)), (code, 1), result)
                for text in [says] if isinstance(says, str) else says:
                    self.assertIn(text, result.messages[0])
        self.assertEqual(self.files(), before)

    def test_refuses_matrices_whose_squares_cannot_be_formed(self):
        matrix = sp.diags([-1.0, 2.5, -1.0], [-1, 0, 1], shape=(80, 80), format="csr")
        for scale in (1e200, 1e-145, 1e-160, 1e-200, 1e-310):
            write_binsparse(self.path("scaled.h5"), scale * matrix)
            for method in ("lanczos", "power"):
                with self.subTest(scale=scale, method=method):
                    out = self.call("eigen", "scaled.h5", "--method", method, ranks=2 if scale == 1e-200 else 0)
                    self.assertEqual(out.code, INPUT, out)
                    self.assertIn("scale the matrix so that its values are near 1", out.messages[0])
        values, _, report = self.eigen(1e-120 * matrix, "--count", 2)
        np.testing.assert_allclose(values, 1e-120 * np.linalg.eigvalsh(matrix.toarray())[-2:], rtol=1e-8)
        values, _, report = self.eigen(sp.csr_matrix((5, 5)), "--count", 2)
        self.assertEqual((list(values), report["converged"]), ([0, 0], True))

    def test_ends_early_on_a_signal(self):
        for method in (["--method", "power"], ["--basis", 8]):
            code, out = self.interrupted("eigen", "poisson7:n=12", *method, "--tolerance", 0, "--max-iterations", 10**9, "--vectors", "v.npy", "--force")
            self.assertEqual(code, 7, out)
            self.assertIn("interrupted", out)
            self.assertEqual(read_vector(self.path("v.npy"), "vectors").shape[0], 1728)


if __name__ == "__main__":
    unittest.main()
