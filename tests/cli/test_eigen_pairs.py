"""shardmat eigen K --mass M against analytic eigenvalues and SciPy's dense solver."""

import json
import unittest
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.io
import scipy.linalg
import scipy.sparse as sp

from support import INPUT, USAGE, CliTest, read_binsparse, read_vector, write_binsparse

NOT_CONVERGED = 7
METHODS = ("lobpcg", "shift_invert")


def bar(n):
    """K, consistent M and λ of a bar of n + 1 linear elements of the length 1/(n + 1), held at both ends."""
    h = 1 / (n + 1)
    k = sp.diags([-1, 2, -1], [-1, 0, 1], shape=(n, n)) / h
    m = sp.diags([1, 4, 1], [-1, 0, 1], shape=(n, n)) * h / 6
    cosine = np.cos(np.arange(1, n + 1) * np.pi * h)
    return sp.csr_matrix(k), sp.csr_matrix(m), 6 / h**2 * (1 - cosine) / (2 + cosine)


def box(n, mass):
    """A cube: eigenvalues come once, three or six times."""
    one = sp.diags([-1, 2, -1], [-1, 0, 1], shape=(n, n))
    k = sp.csr_matrix(sp.kronsum(sp.kronsum(one, one), one))
    of_one = 2 - 2 * np.cos(np.arange(1, n + 1) * np.pi / (n + 1))
    all_of = np.sort((of_one[:, None, None] + of_one[None, :, None] + of_one[None, None, :]).ravel())
    return k, sp.csr_matrix(mass * sp.identity(n**3)), all_of / mass


def plane(nx, ny):
    """K and consistent M of a plate of bilinear squares in its plane: two unknowns a node, nothing holds it."""
    corner = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
    k, m = np.zeros((8, 8)), np.zeros((8, 8))
    stress = np.array([[1, 0.3, 0], [0.3, 1, 0], [0, 0, 0.35]]) / 0.91
    for point in corner / np.sqrt(3):
        terms = 1 + corner * point
        slope = corner * terms[:, ::-1] / 2
        strain, value = np.zeros((3, 8)), np.zeros((2, 8))
        strain[0, ::2], strain[1, 1::2], strain[2, ::2], strain[2, 1::2] = slope[:, 0], slope[:, 1], slope[:, 1], slope[:, 0]
        value[0, ::2] = value[1, 1::2] = terms.prod(axis=1) / 4
        k += strain.T @ stress @ strain / 4
        m += value.T @ value / 4
    node = np.arange((nx + 1) * (ny + 1)).reshape(ny + 1, nx + 1)
    of_element = np.stack([node[:-1, :-1], node[:-1, 1:], node[1:, 1:], node[1:, :-1]], -1).reshape(-1, 4)
    unknowns = (2 * of_element[:, :, None] + np.arange(2)).reshape(-1, 8)
    places = np.repeat(unknowns, 8, axis=1).ravel(), np.tile(unknowns, 8).ravel()
    return tuple(sp.csr_matrix((np.tile(of.ravel(), len(unknowns)), places)) for of in (k, m))


def random_pair(n, seed=0):
    """With a cluster of five eigenvalues that differ by 1e-9, and one of exactly three."""
    generator = np.random.default_rng(seed)
    values = np.sort(np.r_[2 + 1e-9 * np.arange(5), np.full(3, 3.5), generator.uniform(1, 400, n - 8)])
    m = generator.standard_normal((n, n))
    m = m @ m.T + n * np.eye(n)
    q = np.linalg.qr(generator.standard_normal((n, n)))[0]
    root = np.linalg.cholesky(m)
    k = root @ (q * values) @ q.T @ root.T
    return sp.csr_matrix((k + k.T) / 2), sp.csr_matrix(m), values


class EigenPairs(CliTest):
    def setUp(self):
        super().setUp()
        self.runs = 0
        self.two_at_a_time = ThreadPoolExecutor(2)
        self.addCleanup(self.two_at_a_time.shutdown)

    def file(self, matrix):
        self.runs += 1
        return matrix if isinstance(matrix, str) else write_binsparse(self.path(f"a{self.runs}.h5"), matrix)

    def start(self, k, m, *options, ranks=0, code=0):
        """A future of values, vectors (a column each) and the report."""
        names = [self.file(k)] + ([] if m is None else ["--mass", self.file(m)])
        output, report = f"v{self.runs}.npy", f"report{self.runs}.json"

        def run():
            result = self.call("eigen", *names, "--vectors", output, "--json", report, *options, ranks=ranks)
            self.assertEqual(result.code, code, result)
            told = json.loads(self.path(report).read_text())
            vectors = read_vector(self.path(output))
            return np.array([pair["value"] for pair in told["pairs"]]), vectors.reshape(len(vectors), -1).astype(float), told

        return self.two_at_a_time.submit(run)

    def assert_pairs(self, k, m, found, expected, rtol=1e-9, zeros=0):
        values, vectors, report = found
        m = sp.identity(k.shape[0], format="csr") if m is None else m
        np.testing.assert_allclose(values, expected, rtol=rtol, atol=rtol * np.abs(expected).max() if zeros else 0)
        mx = m @ vectors
        residuals = np.linalg.norm(k @ vectors - mx * values, axis=0)
        sizes = np.abs(values) * np.linalg.norm(mx, axis=0)
        self.assertLessEqual((residuals[zeros:] / sizes[zeros:]).max(), 2e-8)
        np.testing.assert_allclose([p["relative_residual"] for p in report["pairs"][zeros:]], (residuals / sizes)[zeros:], rtol=0.5, atol=1e-11)
        np.testing.assert_allclose(vectors.T @ mx, np.eye(len(values)), atol=1e-10)
        self.assertLess(report["pair"]["orthogonality"], 1e-10)
        self.assertEqual(report["pair"]["zero_modes"], zeros)
        np.testing.assert_allclose([p["frequency"] for p in report["pairs"][zeros:]], np.sqrt(values[zeros:]) / (2 * np.pi))
        self.assertTrue(report["converged"])
        if report["eigen"]["method"] == "shift_invert" and "missing" in report["pair"]:
            self.assertEqual(report["pair"]["missing"], 0)

    def test_a_bar_with_consistent_and_lumped_mass(self):
        k, m, exact = bar(90)
        lumped, of_lumped = sp.identity(90, format="csr") / 91, 4 * 91**2 * np.sin(np.arange(1, 91) * np.pi / 182)**2
        for method in METHODS:
            for mass, expected in ((m, exact), (lumped, of_lumped)):
                runs = [self.start(k, mass, "--method", method, "--count", 9, ranks=ranks) for ranks in (0, 2, 3)]
                for run in runs:
                    with self.subTest(method, lumped=mass is lumped):
                        self.assert_pairs(k, mass, run.result(), expected[:9], 1e-8)

    def test_multiple_eigenvalues_are_complete(self):
        k, m, exact = box(9, 0.25)
        for method in METHODS:
            for ranks, count in ((0, 10), (2, 11), (3, 4)):
                with self.subTest(method, ranks=ranks):
                    self.assert_pairs(k, m, self.start(k, m, "--method", method, "--count", count, ranks=ranks).result(), exact[:count])
        near = np.sort(exact[np.argsort(np.abs(exact - 7.001))[:9]])
        for ranks in (0, 2, 3):
            found = self.start(k, m, "--shift", 7.001, "--count", 9, ranks=ranks).result()
            self.assert_pairs(k, m, found, near)
        self.assert_pairs(k, None, self.start(k, None, "--method", "lobpcg", "--count", 10).result(), exact[:10] * 0.25)

    def test_inner_iterations_in_place_of_factors(self):
        k, m, exact = box(9, 0.25)
        near = np.sort(exact[np.argsort(np.abs(exact - 7.001))[:9]])
        options = ["--nx", 12, "--ny", 4, "--nz", 4, "--uniform"]
        parts = {}
        for clamp in (0, 0.05):
            for name in ("elasticity", "mass"):
                self.succeed("generate", name, *options, "--clamp", clamp, "m.h5", "--force")
                parts[name, clamp] = sp.csr_matrix(read_binsparse(self.path("m.h5"))[1])
        for ranks in (0, 2, 3):
            with self.subTest(ranks=ranks):
                found = self.start(k, m, "--shift", 7.001, "--count", 9, "--inner", "minres", ranks=ranks).result()
                self.assert_pairs(k, m, found, near)
                told = found[2]["pair"]
                self.assertEqual((told["inner"], told["complete"]), ("minres", "unknown"))
                self.assertNotIn("missing", told)
                for clamp in (0, 0.05):  # bodies that nothing holds, and supports
                    spec = [f"{name}:nx=12,ny=4,nz=4,uniform,clamp={clamp}" for name in ("elasticity", "mass")]
                    asked = ("--shift", 0.01, "--count", 8)
                    _, _, counted = self.start(*spec, *asked, "--inner", "factors").result()
                    expected = [pair["value"] for pair in counted["pairs"]]
                    found = self.start(*spec, *asked, "--inner", "minres", ranks=ranks).result()
                    self.assert_pairs(parts["elasticity", clamp], parts["mass", clamp], found, expected, 1e-9, 6 if clamp == 0 else 0)
        lowest = self.start(k, m, "--method", "shift_invert", "--count", 5, "--inner", "minres", ranks=2).result()
        self.assert_pairs(k, m, lowest, exact[:5])
        k, m, exact = bar(90)  # the shift is 24 times as far from the lowest value as that is from 0
        for ranks in (0, 2, 3):
            far = self.start(k, m, "--shift", 250, "--count", 7, "--inner", "minres", ranks=ranks).result()
            self.assert_pairs(k, m, far, exact[:7])
        k, m, exact = box(9, 0.25)
        alone = self.start(k, None, "--shift", 1.7, "--count", 4, "--inner", "minres").result()
        self.assert_pairs(k, None, alone, np.sort((0.25 * exact)[np.argsort(np.abs(0.25 * exact - 1.7))[:4]]))
        self.fail_with(USAGE, "(--inner)", "eigen", self.file(k), "--mass", self.file(m), "--inner", "minres")

    def test_clusters_against_a_dense_solver(self):
        k, m, values = random_pair(60)
        dense = scipy.linalg.eigh(k.toarray(), m.toarray(), eigvals_only=True)
        np.testing.assert_allclose(dense, values, rtol=1e-10)
        for method in METHODS:
            for ranks, count in ((0, 6), (2, 12), (3, 3)):
                with self.subTest(method, ranks=ranks, count=count):
                    self.assert_pairs(k, m, self.start(k, m, "--method", method, "--count", count, ranks=ranks).result(), dense[:count])
        near = np.sort(dense[np.argsort(np.abs(dense - 100))[:7]])
        self.assert_pairs(k, m, self.start(k, m, "--shift", 100, "--count", 7, ranks=2).result(), near)

    def test_all_eigenvalues_of_small_pairs(self):
        k, m, values = random_pair(11)
        for method in METHODS:
            for ranks in (0, 2):
                with self.subTest(method, ranks=ranks):
                    self.assert_pairs(k, m, self.start(k, m, "--method", method, "--count", 11, ranks=ranks).result(), values)
        self.assert_pairs(sp.csr_matrix([[3.0]]), sp.csr_matrix([[2.0]]),
                          self.start(sp.csr_matrix([[3.0]]), sp.csr_matrix([[2.0]]), ranks=2).result(), [1.5])

    def test_a_square_beam_and_a_floating_one(self):
        options = ["--nx", 12, "--ny", 4, "--nz", 4, "--uniform"]
        parts = {}
        for clamp in (0, 0.05):
            for name in ("elasticity", "mass"):
                self.succeed("generate", name, *options, "--clamp", clamp, "m.h5", "--force")
                parts[name, clamp] = sp.csr_matrix(read_binsparse(self.path("m.h5"))[1])
        for clamp, zeros in ((0, 6), (0.05, 0)):
            k, m = parts["elasticity", clamp], parts["mass", clamp]
            free = np.flatnonzero(np.diff(sp.csr_matrix(k - sp.diags(k.diagonal())).indptr) > 0)
            if clamp:
                free = np.flatnonzero((abs(k) - abs(sp.diags(k.diagonal()))).sum(axis=1).A1 > 0)
                self.assertLess(len(free), k.shape[0])
            exact = scipy.linalg.eigh(k[free][:, free].toarray(), m[free][:, free].toarray(), eigvals_only=True)
            spec = [f"{name}:nx=12,ny=4,nz=4,uniform,clamp={clamp}" for name in ("elasticity", "mass")]
            for method in METHODS:
                for ranks in (0, 2, 3):
                    with self.subTest(method, clamp=clamp, ranks=ranks):
                        found = self.start(*spec, "--method", method, "--count", 10, ranks=ranks).result()
                        self.assert_pairs(k, m, found, exact[:10], 1e-9, zeros)
                        self.assertEqual(found[2]["pair"]["identity_rows"], k.shape[0] - len(free))
                # Without coordinates multigrid knows three of the six motions.
                self.assert_pairs(k, m, self.start(k, m, "--method", method, "--count", 10).result(), exact[:10], 1e-9, zeros)
            if zeros == 0:  # bending comes in pairs
                self.assertLess(exact[1] / exact[0] - 1, 1e-9)
            shown = self.succeed("eigen", spec[0], "--mass", spec[1], "--count", 7).out
            self.assertEqual("6 rigid-body modes" in shown, zeros == 6, shown)

    def test_zero_modes_of_several_bodies_in_any_unit(self):
        """Newton and metre, and mm, t and s; also units that make K tiny and huge."""
        space = []
        for name in ("elasticity", "mass"):
            self.succeed("generate", name, "--nx", 10, "--ny", 3, "--nz", 3, "--uniform", "--clamp", 0, "m.h5", "--force")
            space.append(sp.csr_matrix(read_binsparse(self.path("m.h5"))[1]))
        runs = []
        for n, (stiffness, density) in enumerate(((2.1e11, 7850), (2.1e5, 7.85e-9), (1e-6, 1), (1e9, 1))):
            for (k, m), zeros in ((plane(24, 4), 3), (space, 6)):
                bodies = n % 3 + 1
                pair = [sp.csr_matrix(sp.block_diag([scale * a] * bodies)) for a, scale in ((k, stiffness), (m, density))]
                alone = scipy.linalg.eigh(k.toarray(), m.toarray(), eigvals_only=True)
                exact = np.sort(np.tile(alone[zeros:zeros + 4] * stiffness / density, bodies))[:4]
                for method in METHODS:
                    asked = ("--method", method, "--count", bodies * zeros + 4)
                    runs.append((pair, zeros * bodies, exact, self.start(*pair, *asked, ranks=(0, 2, 3)[n % 3])))
        for pair, zeros, exact, run in runs:
            with self.subTest(zeros=zeros, exact=exact):
                found = run.result()
                self.assert_pairs(*pair, found, np.r_[np.zeros(zeros), exact], 1e-8, zeros)

    def test_says_whether_eigenvalues_are_missing(self):
        spec = ["elasticity:n=8,clamp=0.02", "--mass", "mass:n=8,clamp=0.02"]
        asked = ("--method", "lobpcg", "--count", 10)
        for ranks in (0, 2, 3):
            for options, complete, code in (((), "yes", 0), (("--no-confirm",), "unknown", 0), (("--tolerance", 0.5), "no", NOT_CONVERGED)):
                with self.subTest(ranks=ranks, options=options):
                    result = self.call("eigen", *spec, *asked, *options, "--json", "r.json", "--force", ranks=ranks)
                    self.assertEqual(result.code, code, result)
                    told = json.loads(self.path("r.json").read_text())["pair"]
                    self.assertEqual((told["complete"], told.get("missing", 0) > 0), (complete, complete == "no"))
                    self.assertEqual("missing" in result.err, complete == "no", result.err)
        large = ["elasticity:n=11,clamp=0.02", "--mass", "mass:n=11,clamp=0.02"]
        for options, complete in (((), "unknown"), (("--check-count",), "yes")):
            report = json.loads(self.succeed("eigen", *large, *asked, *options, "--json", ranks=2).out)
            self.assertEqual(report["pair"]["complete"], complete)

    def test_penalty_rows_and_types(self):
        k, m, exact = bar(60)
        held = k.tolil()
        for row in (0, 30):
            held[row, row] = 1e30
        kept = np.setdiff1d(np.arange(60), (0, 30))
        dense = scipy.linalg.eigh(k[kept][:, kept].toarray(), m[kept][:, kept].toarray(), eigvals_only=True)
        for method in METHODS:
            found = self.start(sp.csr_matrix(held), m, "--method", method, "--count", 5, ranks=2).result()
            np.testing.assert_allclose(found[0], dense[:5], rtol=1e-8)
            self.assertEqual(found[2]["penalty_rows"]["count"], 2)
            np.testing.assert_allclose(found[1][[0, 30]], 0)
        self.fail_with(USAGE, "f64", "eigen", self.file(k), "--mass", self.file(m), "--type", "f32")

    def test_masses_that_are_zero(self):
        k, _, _ = bar(40)
        mass = np.linspace(1, 2, 40)
        mass[::4] = 0
        dense = 1 / scipy.linalg.eigh(np.diag(mass), k.toarray(), eigvals_only=True)[::-1][:6]
        m = sp.csr_matrix(sp.diags(mass))
        found = self.start(k, m, "--method", "shift_invert", "--count", 6).result()
        self.assert_pairs(k, m, found, dense)
        self.fail_with(INPUT, "no mass", "eigen", self.file(k), "--mass", self.file(m), "--method", "lobpcg")

    def fail_with(self, code, text, *command):
        for ranks in (0, 2):
            result = self.call(*command, ranks=ranks)
            self.assertEqual(result.code, code, result)
            self.assertIn(text, result.err)

    def test_what_is_wrong_is_told(self):
        k, m, _ = bar(30)
        of_k, of_m = self.file(k), self.file(m)
        skewed = m.tolil()
        skewed[3, 4] *= 1.5
        self.fail_with(USAGE, "M is not symmetric", "eigen", of_k, "--mass", self.file(sp.csr_matrix(skewed)))
        skewed = k.tolil()
        skewed[3, 4] *= 1.5
        self.fail_with(USAGE, "K is not symmetric", "eigen", self.file(sp.csr_matrix(skewed)), "--mass", of_m)
        self.fail_with(INPUT, "M is not positive definite", "eigen", of_k, "--mass", self.file(-m))
        indefinite = sp.csr_matrix(sp.diags([-1, 1, -1], [-1, 0, 1], shape=(30, 30)))
        for method in METHODS:
            self.fail_with(INPUT, "M is not positive definite", "eigen", of_k, "--mass", self.file(indefinite), "--method", method)
        self.fail_with(USAGE, "matrices of one size", "eigen", of_k, "--mass", self.file(bar(29)[1]))
        negative = self.file(sp.csr_matrix(k - 2000 * m))
        for method in METHODS:
            self.fail_with(INPUT, "K is not positive semidefinite", "eigen", negative, "--mass", of_m, "--method", method)
        self.fail_with(USAGE, "31 eigenvalues are wanted", "eigen", of_k, "--mass", of_m, "--count", 31)
        self.fail_with(USAGE, "(--method)", "eigen", of_k, "--mass", of_m, "--method", "lanczos")
        self.fail_with(USAGE, "(--which)", "eigen", of_k, "--mass", of_m, "--which", "largest")
        self.fail_with(USAGE, "(--mass)", "eigen", of_k, "--mass", "auto")
        self.fail_with(INPUT, "none.h5", "eigen", of_k, "--mass", "none.h5")
        k, m, _ = box(12, 1)
        _, _, report = self.start(k, m, "--method", "lobpcg", "--max-iterations", 1, "--count", 8, code=NOT_CONVERGED).result()
        self.assertFalse(report["converged"])

    def test_calculix_job(self):
        k, m, exact = bar(30)
        for name, matrix in (("job.sti", k), ("job.mas", m)):
            upper = sp.triu(matrix).tocoo()
            self.path(name).write_text("".join(f"{i + 1} {j + 1} {v!r}\n" for i, j, v in zip(upper.row, upper.col, upper.data)))
        self.path("job.dof").write_text("".join(f"{i + 1}.1\n" for i in range(30)))
        report = json.loads(self.succeed("eigen", "job.sti", "--mass", "auto", "--count", 4, "--json").out)
        np.testing.assert_allclose([pair["value"] for pair in report["pairs"]], exact[:4], rtol=1e-9)


if __name__ == "__main__":
    unittest.main()
