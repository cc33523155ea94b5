"""shardmat solve against SciPy's direct solver."""

import json
import signal
import unittest
import xml.etree.ElementTree as ElementTree

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

from support import (INPUT, RESOURCES, USAGE, address_space_limit, fem_matrix, has_matplotlib, read_vector, write_binsparse,
                     write_vector)
from systems import NOT_CONVERGED, Solving, badly_scaled, cantilever, convection_diffusion, laplacian, saddle, stokes


class Solve(Solving):
    def test_penalty_rows(self):
        """Known values stated by huge diagonals, against SciPy's direct solution with these rows eliminated."""
        rng = np.random.default_rng(11)
        cases = [("laplacian", laplacian(12), "auto", 1e30), ("convection", convection_diffusion(11, 2.0), "auto", 1e20),
                 ("convection", convection_diffusion(11, 2.0), "bicgstab", 1e13), ("bar", fem_matrix("elasticity_bar"), "cg", 1e30)]
        for name, a, method, tgv in cases:
            n = a.shape[0]
            known = np.sort(rng.choice(n, n // 5, replace=False))
            free = np.setdiff1d(np.arange(n), known)
            diagonal = a.diagonal()
            diagonal[known] = tgv * rng.uniform(1, 3, known.size)
            a = a.tolil()
            a.setdiag(diagonal)
            a = sp.csr_matrix(a)
            values, b = rng.standard_normal((known.size, 2)), rng.standard_normal((n, 2))
            b[known] = diagonal[known, None] * values
            right = b[free] - a[free][:, known] @ values
            expected = np.empty((n, 2))
            expected[known] = values
            expected[free] = scipy.sparse.linalg.spsolve(sp.csc_matrix(a[free][:, free]), right)
            for ranks in (0, 2, 3):
                for preconditioner in ("none", "jacobi", "block_jacobi", "chebyshev") if name != "convection" else ("jacobi",):
                    if name == "bar" and preconditioner == "none":
                        continue
                    with self.subTest(name=name, method=method, ranks=ranks, preconditioner=preconditioner):
                        x, column = self.solution(a, b, "--solver", method, "--preconditioner", preconditioner,
                                                  "--rtol", "1e-11", "--rhs", "2", ranks=ranks)
                        np.testing.assert_allclose(x, expected, atol=1e-7 * np.abs(expected).max())
                        report = json.loads(self.path("report.json").read_text())
                        self.assertEqual(report["penalty_rows"]["count"], known.size)
                        self.assertGreater(report["penalty_rows"]["largest_ratio"], tgv / 1000)
                        for j, column in enumerate(report["columns"]):  # what the caller computes is explained
                            norm = np.linalg.norm(right[:, j])
                            self.assertAlmostEqual(column["norm_of_b"] / norm, 1, 10)
                            self.assertAlmostEqual(column["true_residual"] / norm,
                                                   np.linalg.norm((b - a @ x)[free, j]) / norm, 13)

    def test_large_diagonals_that_are_no_penalty_rows(self):
        """Scaling makes large diagonals, too: such rows matter to others."""
        n = 60
        a = laplacian(8)[:n, :n] + sp.eye(n)
        x = np.random.default_rng(3).standard_normal(n)
        one, spread = np.ones(n), 10.0 ** np.linspace(0, 13, n)
        one[17] = one[40] = 1e9
        for name, left, right in (("both", one, one), ("columns", np.ones(n), one * one), ("spread", spread, np.ones(n))):
            with self.subTest(name):
                scaled = sp.csr_matrix(sp.diags(left) @ a @ sp.diags(right))
                self.solution(scaled, scaled @ (x / right), "--solver", "gmres", "--restart", "60", "--preconditioner", "jacobi",
                              "--max-iterations", "0", code=NOT_CONVERGED)
                report = json.loads(self.path("report.json").read_text())["penalty_rows"]
                self.assertEqual(report["count"], 0)
                self.assertEqual("badly scaled" in report.get("note", ""), name != "spread")

    def test_restarts_that_are_too_large(self):
        most = "must be a whole number from 1 to 100000"
        for restart in (0, -1, 100001, 2**61, 2**63 - 1, 2**64 + 30):
            for solver in ("gmres", "fgmres"):
                for ranks in (0, 2) if restart == 2**61 else (0,):
                    self.fail_with(USAGE, "solve", "convection:n=3", "--solver", solver, "--restart", restart, ranks=ranks,
                                   says=["--restart", most, f'"{restart}"'])
        # A basis has as many vectors as the matrix has rows, at most.
        a = sp.csr_matrix(sp.diags([-1.0, 2.5, -1.5], [-1, 0, 1], shape=(40, 40)))
        wanted = np.linspace(1, 3, 40) ** 2
        for solver in ("gmres", "fgmres"):
            x, _ = self.solution(a, a @ wanted, "--solver", solver, "--restart", "100000", "--rtol", "1e-12")
            np.testing.assert_allclose(x, wanted, rtol=1e-9)
        # The triangle of a basis counts, too: 80 GB beside 400 GB of vectors.
        self.fail_with(RESOURCES, "solve", "poisson:nx=500,ny=500,nz=2", "--solver", "gmres", "--restart", 100000,
                       preexec_fn=address_space_limit(8 << 30), says=["the vectors of the solver needs 560 GB"])

    def test_choices_of_penalty_rows(self):
        n = 30
        a = sp.csr_matrix(sp.diags([-1.0, 2.5, -1.0], [-1, 0, 1], shape=(n, n))).tolil()
        b = np.linspace(1, 2, n)
        few, most = a.copy(), a.copy()
        few[3, 3], b[3] = 1e20, 7e20
        for i in range(20):
            most[i, i] = 1e20
        x, _ = self.solution(sp.csr_matrix(few), b, "--penalty-rows", "known", "--preconditioner", "jacobi")
        self.assertEqual(x[3], 7)
        self.solution(sp.csr_matrix(few), b, "--penalty-rows", "keep", "--preconditioner", "jacobi")
        self.assertEqual(json.loads(self.path("report.json").read_text())["penalty_rows"],
                         {"choice": "keep", "count": 0, "largest_ratio": 0})
        c = np.ones(n)
        c[:20] = 1e20 * np.arange(20)
        rest = c[20:].copy()
        rest[0] += 19  # of the last known value
        wanted = np.concatenate([np.arange(20), sp.linalg.spsolve(sp.csc_matrix(a[20:, 20:]), rest)])
        for choice in ("auto", "known"):  # also where most rows are such rows
            x, _ = self.solution(sp.csr_matrix(most), c, "--penalty-rows", choice, "--rtol", "1e-12")
            self.assertEqual(json.loads(self.path("report.json").read_text())["penalty_rows"]["count"], 20)
            np.testing.assert_array_equal(x[:20], np.arange(20))
            np.testing.assert_allclose(x, wanted, rtol=1e-10)
        write_binsparse(self.path("plain.h5"), sp.csr_matrix(a))
        self.fail_with(USAGE, "solve", "plain.h5", "--penalty-rows", "known", says=["no penalty rows"])
        write_binsparse(self.path("more.h5"), sp.csr_matrix(most))
        self.assertEqual(self.json_of("info", "more.h5")["penalty_rows"]["count"], 20)
        c[0] = np.nan
        write_binsparse(self.path("most.h5"), sp.csr_matrix(most))
        write_vector(self.path("nan.npy"), c)
        self.fail_with(INPUT, "solve", "most.h5", "--b", "nan.npy", "--penalty-rows", "known", says=["must be finite"])

    def test_info_and_eigen_name_penalty_rows(self):
        a = sp.lil_matrix(laplacian(8))
        a[5, 5], a[40, 40] = 1e30, 3e20
        write_binsparse(self.path("tgv.h5"), sp.csr_matrix(a))
        write_binsparse(self.path("plain.h5"), laplacian(8))
        for options in ([], ["--stream"]):
            found = self.json_of("info", "tgv.h5", *options)["penalty_rows"]
            self.assertEqual([found["count"], found["first"]], [2, 5])
            self.assertAlmostEqual(found["largest_ratio"] / 2.5e29, 1, 12)
            self.assertAlmostEqual(found["least_ratio"] / 7.5e19, 1, 12)
            self.assertIn("penalty rows 2 (first: row 5)", self.succeed("info", "tgv.h5", *options).out)
            self.assertEqual(self.json_of("info", "plain.h5", *options)["penalty_rows"], {"count": 0})
        for ranks in (0, 2):
            result = self.call("eigen", "tgv.h5", "--json", "e.json", ranks=ranks)
            self.assertIn("2 rows with a diagonal up to", result.out)
            self.assertEqual(json.loads(self.path("e.json").read_text())["penalty_rows"]["count"], 2)
        self.assertNotIn("penalty", self.succeed("eigen", "plain.h5").out)

    def test_answers_of_scipy(self):
        spd = {"laplacian": laplacian(12), "badly scaled": badly_scaled(5), "one row": sp.csr_matrix([[4.0]]),
               "bar": fem_matrix("elasticity_bar")}
        general = {"convection": convection_diffusion(10, 3.0), "fast convection": convection_diffusion(9, 20.0),
                   "fem convection": fem_matrix("convection")}
        cases = [(name, a, m, p) for name, a in spd.items() for m in ("cg", "minres", "gmres", "bicgstab", "chebyshev")
                 for p in ("none", "jacobi", "block_jacobi")
                 if not (name in ("badly scaled", "bar") and (p == "none" or m in ("bicgstab", "chebyshev")))
                 and not (p == "block_jacobi" and m not in ("cg", "minres")) and not (name == "one row" and p != "none")]
        cases += [(name, a, "cg single_reduction", "none" if name == "one row" else "jacobi") for name, a in spd.items()]
        cases += [(name, a, m, "jacobi") for name, a in general.items() for m in ("gmres", "fgmres", "bicgstab")]
        cases += [("saddle", saddle(6), m, "none") for m in ("minres", "gmres")]
        automatic = {"laplacian": "cg", "saddle": "minres", "fast convection": "gmres"}
        cases += [("laplacian", spd["laplacian"], "auto", "none"), ("saddle", saddle(6), "auto", "none"),
                  ("fast convection", general["fast convection"], "auto", "jacobi")]
        self.assertGreaterEqual(len(cases), 30)
        for number, (name, matrix, method, preconditioner) in enumerate(cases):
            with self.subTest(name, method=method, preconditioner=preconditioner):
                method, *variant = method.split()
                b = np.random.default_rng(5).standard_normal(matrix.shape[0])
                more = [*(["--restart", 200] if method in ("gmres", "fgmres", "auto") else []), *(["--variant", *variant] if variant else [])]
                x, report = self.solution(matrix, b, "--solver", method, "--preconditioner", preconditioner, "--rtol", 1e-10, *more,
                                          ranks=(0, 0, 2, 0, 0, 3)[number % 6])
                column = report["columns"][0]
                self.assertEqual(column["reason"], "converged_rtol")
                self.assertEqual(report["solver"]["name"], automatic[name] if method == "auto" else method)
                self.assertIs("why" in report["solver"], method == "auto")
                residual = np.linalg.norm(b - matrix @ x)
                self.assertLessEqual(residual, 1.01e-10 * np.linalg.norm(b))
                self.assertAlmostEqual(column["true_residual"], residual, delta=0.1 * residual + 1e-13 * np.linalg.norm(b))
                expected = scipy.sparse.linalg.spsolve(matrix.tocsc(), b)
                largest = np.abs(np.linalg.inv(matrix.toarray())).sum(axis=1).max()
                self.assertLessEqual(np.abs(x - expected).max(), 2 * largest * residual + 1e-9 * np.abs(expected).max())

    def test_several_right_hand_sides_are_those_of_single_solves(self):
        matrix, rng = laplacian(10), np.random.default_rng(6)
        b = rng.standard_normal((100, 3))
        b[:, 1] *= 1e6
        for method in ("cg", "gmres"):
            x, report = self.solution(matrix, b, "--rhs", 3, "--solver", method, "--preconditioner", "none", ranks=2)
            self.assertTrue(report["converged"])
            parts = {part["name"]: part for part in report["parts"]}
            self.assertEqual(list(parts), ["product", "exchange", "sums", "vectors"])
            self.assertTrue(all(part["seconds"] > 0 for name, part in parts.items() if name != "vectors"))
            if method == "cg":
                sums, passes = {"classic": (2, 8), "single_reduction": (1, 9)}[report["solver"]["variant"]]
                self.assertEqual((parts["product"]["count"], parts["sums"]["count"]), (1, sums))
                self.assertEqual(parts["vectors"]["bytes"], (passes + 2) * 3 * 8 * report["partition"]["rows"]["max"])
            for j in range(3):
                self.assertLessEqual(np.linalg.norm(b[:, j] - matrix @ x[:, j]), 1.01e-8 * np.linalg.norm(b[:, j]))

    def test_more_ranks_than_rows_and_no_rows(self):
        x, _ = self.solution(sp.csr_matrix(np.diag([2.0, 4.0])), np.array([2.0, 2.0]), ranks=4)
        np.testing.assert_allclose(x, [1, 0.5])
        x, report = self.solution(sp.csr_matrix((0, 0)), np.zeros(0))
        self.assertEqual((x.size, report["converged"]), (0, True))
        for method, preconditioner in [(m, p) for m in ("auto", "cg", "gmres", "chebyshev") for p in ("jacobi", "block_jacobi", "chebyshev")]:
            with self.subTest(method=method, preconditioner=preconditioner):
                x, report = self.solution(sp.csr_matrix((0, 0)), np.zeros(0), "--solver", method, "--preconditioner", preconditioner,
                                          ranks=2 if method == "cg" else 0)
                self.assertEqual((x.size, report["converged"], report["columns"][0]["iterations"]), (0, True, 0))

    def test_what_did_not_converge_is_said_and_written(self):
        x, report = self.solution(laplacian(12), np.ones(144), "--max-iterations", 5, ranks=2, code=NOT_CONVERGED)
        self.assertEqual(report["columns"][0]["reason"], "diverged_iterations")
        self.assertEqual(len(report["columns"][0]["history"]), 6)
        self.assertLess(np.linalg.norm(np.ones(144) - laplacian(12) @ x), 12 * 4)
        for variant in ("classic", "single_reduction"):
            _, report = self.solution(sp.csr_matrix(np.diag([1.0, -2.0, 3.0])), np.ones(3), "--solver", "cg", "--preconditioner", "none", "--variant", variant, code=NOT_CONVERGED)
            self.assertEqual(report["columns"][0]["reason"], "diverged_indefinite_matrix")
            self.assertEqual(report["solver"]["variant"], variant)
        self.assertNotIn("floor", report["columns"][0])
        singular = sp.csr_matrix(np.array([[1.0, 1.0], [1.0, 1.0]]))
        _, report = self.solution(singular, np.array([1.0, 0.0]), "--solver", "gmres", code=NOT_CONVERGED)
        self.assertFalse(report["converged"])

    def test_a_residual_of_the_size_of_rounding_errors_is_converged(self):
        n = 30  # a thin beam
        beam = sp.diags([1.0, -4.0, 6.0, -4.0, 1.0], [-2, -1, 0, 1, 2], shape=(n, n)).tocsr()
        b = np.random.default_rng(5).standard_normal((n, 2))
        for ranks, type, more in ((1, "f64", ()), (2, "f64", ()), (3, "f64", ("--storage", "symmetric")),
                                  (2, "f64", ("--preconditioner", "jacobi", "--residual-norm", "preconditioned")),
                                  (2, "f64", ("--monitor-true-residual",)), (2, "f32", ())):
            with self.subTest(ranks=ranks, type=type, more=more):
                matrix = beam if type == "f64" else laplacian(5)
                x, report = self.solution(matrix, b[:matrix.shape[0]], "--type", type, "--rtol", 1e-17, "--rhs", 2, *more, ranks=ranks)
                for j, column in enumerate(report["columns"]):
                    magnitudes = np.linalg.norm(abs(matrix) @ abs(x[:, j]))
                    epsilon = 2.0 ** -52 if type == "f64" else 2.0 ** -23
                    self.assertEqual((column["reason"], column["converged"]), ("converged_attainable", True))
                    self.assertAlmostEqual(column["floor"] / (2 * epsilon * magnitudes), 1, places=9 if type == "f64" else 5)
                    self.assertLessEqual(column["backward_error"], 2 * epsilon)
                    self.assertLessEqual(np.linalg.norm(b[:matrix.shape[0], j] - matrix @ x[:, j]), 2 * epsilon * magnitudes * 1.5)

    def test_beams_with_large_condition_numbers(self):
        """Cantilevers of Q4 and Hex8 elements, and a beam by differences: the residual reaches units in the last place of
        |A| |x|. SciPy's direct solver does no better."""
        n = 90
        differences = sp.diags([1.0, -4.0, 6.0, -4.0, 1.0], [-2, -1, 0, 1, 2], shape=(n, n)).tocsr()
        b = np.random.default_rng(5).standard_normal(n)
        exact = scipy.sparse.linalg.spsolve(differences.tocsc(), b)
        for ranks in (1, 2, 3):
            with self.subTest(beam="differences", ranks=ranks):
                x, report = self.solution(differences, b, "--rtol", 1e-13, ranks=ranks)
                self.assertEqual(report["columns"][0]["reason"], "converged_attainable")
                np.testing.assert_allclose(x, exact, rtol=1e-9, atol=1e-9 * np.abs(exact).max())
                # The other variant may lose such a system (condition 5e10) to rounding, and measuring may choose it.
                x, report = self.solution(differences, b, "--rtol", 1e-13, "--type", "f32", "--max-iterations", 60000,
                                          "--solver", "cg", "--preconditioner", "none", "--variant", "classic", ranks=ranks)
                self.assertEqual(report["columns"][0]["reason"], "converged_attainable")
                np.testing.assert_allclose(x, exact, atol=1e-3 * np.abs(exact).max())
        for beam, matrix, b in (("Q4", *cantilever((60, 2), (10, 0.1))), ("Hex8", *cantilever((60, 1, 1), (1, 1, 1)))):
            exact = scipy.sparse.linalg.spsolve(matrix.tocsc(), b)
            for ranks in (1, 2, 3):
                with self.subTest(beam=beam, ranks=ranks):
                    x, report = self.solution(matrix, b, "--solver", "cg", "--preconditioner", "jacobi", "--rtol", 1e-12,
                                              "--max-iterations", 200000, ranks=ranks)
                    column = report["columns"][0]
                    self.assertEqual((column["reason"], column["converged"]), ("converged_attainable", True))
                    scale = np.linalg.norm(abs(matrix) @ abs(x))
                    self.assertLessEqual(np.linalg.norm(b - matrix @ x), 2 * 2.0**-52 * scale)
                    self.assertAlmostEqual(column["floor"] / (2 * 2.0**-52 * scale), 1, places=9)
                    # The condition number bounds how near both answers are; their energies are nearer.
                    difference = x - exact
                    self.assertLess(np.linalg.norm(difference), 1e-4 * np.linalg.norm(exact))
                    self.assertLess(difference @ (matrix @ difference), 1e-9 * (exact @ b))

    def test_the_floor_where_rows_state_known_values(self):
        """Penalty rows count neither in the floor nor in the residual; what they add to other rows does."""
        matrix, b = cantilever((60, 2), (10, 0.1), free=True)
        n, held = matrix.shape[0], np.arange(6)
        matrix = matrix.tolil()
        for i in held: matrix[i, i] = 1e30
        matrix, free = matrix.tocsr(), np.arange(6, n)
        b[held] = 1e30 * 1e-3 * np.array([1, -1, 2, 0.5, 0.3, -2])
        for ranks in (1, 2, 3):
            x, report = self.solution(matrix, b, "--solver", "cg", "--preconditioner", "jacobi", "--rtol", 1e-15,
                                      "--max-iterations", 200000, ranks=ranks)
            self.assertEqual(report["penalty_rows"]["count"], 6)
            column = report["columns"][0]
            self.assertEqual(column["reason"], "converged_attainable")
            scale = np.linalg.norm((abs(matrix) @ abs(x))[free])
            self.assertAlmostEqual(column["floor"] / (2 * 2.0**-52 * scale), 1, places=9)
            self.assertLessEqual(np.linalg.norm((b - matrix @ x)[free]), 2 * 2.0**-52 * scale * 1.5)
            np.testing.assert_allclose(x[held], b[held] / 1e30, rtol=1e-14)

    def test_negative_definite_matrices(self):
        bar = fem_matrix("elasticity_bar")
        b = np.random.default_rng(13).standard_normal(bar.shape[0])
        for ranks in (1, 2, 3):
            for options in ((), ("--solver", "minres", "--preconditioner", "block_jacobi", "--node-block-size", 3)):
                x, report = self.solution(-bar, b, *options, ranks=ranks)
                self.assertEqual(report["solver"]["preconditioner"], "block_jacobi")
                self.assertLessEqual(np.linalg.norm(bar @ x + b), 1.01e-8 * np.linalg.norm(b))

    def test_a_residual_above_rounding_errors_is_not_converged(self):
        singular = sp.csr_matrix(np.array([[1.0, 1.0], [1.0, 1.0]]))
        for solver in ("cg", "minres", "gmres", "bicgstab"):
            x, report = self.solution(singular, np.array([1.0, 0.0]), "--solver", solver, code=NOT_CONVERGED)
            self.assertFalse(report["columns"][0]["converged"])
            if solver == "minres":
                self.assertEqual(report["columns"][0]["reason"], "least_squares")
                self.assertLessEqual(report["columns"][0]["normal_residual"], 1e-14)
                np.testing.assert_allclose(singular @ x, [0.5, 0.5], rtol=1e-12)

    def test_factors(self):
        """On any number of ranks, with the answers of SciPy's factors."""
        systems = {"laplacian": laplacian(12), "convection": convection_diffusion(11, 2.0), "saddle": saddle(9),
                   "bar": fem_matrix("elasticity_bar"), "stokes": stokes(60), "indefinite": sp.csr_matrix(laplacian(12) - 1.3 * sp.eye(144))}
        for name, a in systems.items():
            b = np.random.default_rng(4).standard_normal((a.shape[0], 2))
            expected = scipy.sparse.linalg.spsolve(sp.csc_matrix(a), b)
            for ranks in (0, 2, 3):
                with self.subTest(name=name, ranks=ranks):
                    x, _ = self.solution(a, b, "--solver", "direct", "--rtol", "1e-12", "--rhs", "2", ranks=ranks)
                    np.testing.assert_allclose(x, expected, atol=1e-7 * np.abs(expected).max())
                    report = json.loads(self.path("report.json").read_text())
                    self.assertLessEqual(report["iterations"], 3)
                    self.assertEqual(report["direct"]["factors"] == "L·U", name == "convection")
                    if name == "stokes":
                        self.assertEqual(report["direct"]["negative_pivots"], 60 * 60 - 1)

    def test_slow_solves_name_the_direct_solver(self):
        words = ["solve", "elasticity:nx=101,ny=3,nz=3,uniform,clamp=0.01", "--backend", "host", "--preconditioner"]
        slow = self.call(*words, "jacobi", "--solver", "cg", "--max-iterations", 300)
        self.assertEqual(slow.code, NOT_CONVERGED)
        self.assertIn("take the solver direct", slow.out)
        self.assertNotIn("take the solver direct", self.succeed(*words, "direct").out)

    def test_tolerance_that_no_one_gave(self):
        matrix, b = laplacian(20), np.random.default_rng(8).standard_normal(400)
        for type, expected in (("f32", 1e-5), ("f64", 1e-8)):
            x, report = self.solution(matrix, b, "--type", type)
            self.assertEqual((report["solver"]["rtol"], report["converged"]), (expected, True))
            self.assertLessEqual(np.linalg.norm(b - matrix @ x), 1.1 * expected * np.linalg.norm(b))
            for given in (0, 1e-3):
                _, report = self.solution(matrix, b, "--type", type, "--rtol", given, "--atol", 1, ranks=2)
                self.assertEqual((report["solver"]["rtol"], report["converged"]), (given, True))
        _, report = self.solution(matrix, b, "--rtol", 0, "--max-iterations", 3, code=NOT_CONVERGED)
        self.assertEqual(report["columns"][0]["reason"], "diverged_iterations")

    def test_refuses_b_whose_squares_cannot_be_formed(self):
        matrix = laplacian(6)
        b = np.ones((36, 2)) * [[0, 1]]
        for factor, options in ((1e-170, []), (1e-145, []), (1e200, []), (1e-170, ["--null-space", "constant"])):
            with self.subTest(factor=factor, options=options):
                if options:
                    path = sp.diags([1.0, 1.0], [-1, 1], shape=(36, 36), format="csr")
                    write_binsparse(self.path("a.h5"), sp.csgraph.laplacian(path))
                    write_vector(self.path("b.npy"), factor * np.arange(72.0).reshape(36, 2) * [[0, 1]])
                else:
                    write_binsparse(self.path("a.h5"), matrix)
                    write_vector(self.path("b.npy"), factor * b)
                out = self.call("solve", "a.h5", "--b", "b.npy", "--rhs", 2, *options, ranks=2)
                self.assertEqual(out.code, INPUT, out)
                self.assertIn("multiply b by a number that brings its entries near 1", out.messages[0])
        x, report = self.solution(matrix, 1e-120 * b, "--rhs", 2)
        self.assertTrue(report["converged"])
        self.assertLessEqual(np.linalg.norm(1e-120 * b - matrix @ x), 1.1e-8 * 6e-120)

    def test_estimates_the_condition(self):
        matrix = badly_scaled(5)
        for preconditioner, variant, ranks in (("none", "classic", 0), ("jacobi", "single_reduction", 2)):
            _, report = self.solution(matrix, np.ones((25, 2)) * [[1, 3]], "--rhs", 2, "--rtol", 1e-12, "--preconditioner", preconditioner, "--variant", variant, ranks=ranks)
            scale = sp.diags(matrix.diagonal() ** -0.5) if preconditioner == "jacobi" else sp.identity(25)
            values = np.linalg.eigvalsh((scale @ matrix @ scale).toarray())
            for column in report["columns"]:
                spectrum = column["spectrum"]
                self.assertLessEqual(spectrum["largest"], values[-1] * (1 + 1e-9))
                self.assertGreaterEqual(spectrum["least"], values[0] * (1 - 1e-6))
                self.assertAlmostEqual(spectrum["condition"] / (values[-1] / values[0]), 1, delta=0.02)
        for solver in ("minres", "gmres"):
            _, report = self.solution(matrix, np.ones(25), "--solver", solver, "--preconditioner", "none", "--rtol", 1e-12, *(("--restart", 30) if solver == "gmres" else ()))
            column = report["columns"][0]
            values = np.linalg.eigvalsh(matrix.toarray())
            self.assertAlmostEqual(column["spectrum"]["condition"] / (values[-1] / values[0]), 1, delta=0.05)
            self.assertEqual(column["error"]["norm"], "2-norm")
        for options in (["--solver", "bicgstab"], ["--max-iterations", 1]):
            _, report = self.solution(matrix, np.ones(25), *options, code=NOT_CONVERGED if options[1] == 1 else 0)
            self.assertNotIn("spectrum", report["columns"][0])

    def test_advises_what_helps(self):
        scaled, b = badly_scaled(20), np.ones((400, 2))  # jacobi: 72 iterations, none: thousands
        options, none = ["--max-iterations", 1200, "--rhs", 2, "--kernel", "csr_host", "--solver", "cg"], ["--preconditioner", "none"]
        x, report = self.solution(scaled, b, *options, *none, code=NOT_CONVERGED)
        advice, history = report["advice"], report["columns"][0]["history"]
        self.assertEqual(advice["preconditioner"], "jacobi")
        self.assertGreaterEqual(advice["instead_of"], 1.3 * advice["iterations"])
        self.assertLessEqual(advice["iterations"], 60)
        _, tried = self.solution(scaled, b, *options, "--preconditioner", "jacobi")  # the claim, again
        residual = tried["columns"][0]["history"][advice["iterations"]]
        self.assertIs(advice["at_least"], min(history) > residual)
        again, report = self.solution(scaled, b, *options, *none, "--no-advice", code=NOT_CONVERGED)
        self.assertNotIn("advice", report)
        np.testing.assert_array_equal(again, x)
        _, report = self.solution(laplacian(12), np.ones(144), "--max-iterations", 10, ranks=2, code=NOT_CONVERGED)
        self.assertNotIn("advice", report)  # too few iterations

    def test_begins_from_a_guess(self):
        matrix, b = laplacian(10), np.ones(100)
        x, report = self.solution(matrix, b)
        write_vector(self.path("guess.npy"), x)
        _, again = self.solution(matrix, b, "--initial-guess", "guess.npy")
        self.assertGreater(report["iterations"], 5)
        self.assertEqual(again["iterations"], 0)

    def test_refuses(self):
        write_binsparse(self.path("wide.h5"), sp.csr_matrix(np.ones((2, 3))))
        write_binsparse(self.path("a.h5"), laplacian(3))
        write_binsparse(self.path("c.h5"), convection_diffusion(4, 3.0))
        write_vector(self.path("short.npy"), np.ones(5))
        write_vector(self.path("nan.npy"), np.full(9, np.nan))
        self.fail_on_every_rank(USAGE, "solve", "wide.h5", says=["2 × 3", "square"])
        self.fail_on_every_rank(USAGE, "solve", "c.h5", "--solver", "cg", says=["not", "gmres", "--solver"])
        self.fail_with(INPUT, "solve", "a.h5", "--b", "short.npy", says="short.npy")
        self.fail_on_every_rank(INPUT, "solve", "a.h5", "--b", "nan.npy", "--output", "x.npy", says=["nan.npy", "finite"])
        self.fail_with(USAGE, "solve", "a.h5", "--solver", "gmress", says="did you mean gmres?")
        self.fail_with(USAGE, "solve", "a.h5", "--preconditioner", "jacob", says="did you mean jacobi?")
        self.fail_with(USAGE, "solve", "a.h5", "--solver", "gmres", "--restart", 0, says="--restart")
        self.fail_with(USAGE, "solve", "a.h5", "--solver", "gmres", "--variant", "classic", says=["of no use", "--variant"])
        self.fail_with(USAGE, "solve", "a.h5", "--solver", "gmres", "--residual-norm", "natural", says="--residual-norm")
        for option, value, user in (("--restart", 10, "gmres, fgmres or auto"), ("--gram-schmidt", "modified", "gmres, fgmres or auto"),
                                    ("--degree", 3, "chebyshev"), ("--strength", 0.1, "multigrid, field_split or auto")):
            self.fail_with(USAGE, "solve", "a.h5", "--solver", "cg", "--preconditioner", "jacobi", option, value,
                           says=["is of no use with the ", f"or take {user} ({option})"])
        self.succeed("solve", "a.h5", "--solver", "auto", "--restart", 10, "--gram-schmidt", "modified")  # it may take gmres
        write_binsparse(self.path("indefinite.h5"), sp.csr_matrix(laplacian(8) - 3 * sp.identity(64)))
        unsuited = ["solve", "indefinite.h5", "--max-iterations", 5]
        self.fail_with(USAGE, *unsuited, "--solver", "chebyshev", says=["Take another solver, as gmres (--solver)"])
        self.fail_with(USAGE, *unsuited, "--solver", "gmres", "--preconditioner", "chebyshev",
                       says=["Take another preconditioner, as jacobi (--preconditioner)"])
        self.fail_on_every_rank(USAGE, "solve", "a.h5", "--preconditioner", "block_jacobi", "--node-block-size", 2,
                                says=["9 rows are no whole number of nodes of 2", "(--node-block-size)"])

    def test_prints_residuals(self):
        result = self.succeed("solve", "poisson27:n=6", "--monitor")
        lines = [line for line in result.err.splitlines() if line.strip()[:1].isdigit()]
        self.assertGreater(len(lines), 5)
        self.assertLess(float(lines[-1].split()[1]), 1e-6)

    @unittest.skipUnless(has_matplotlib(), "matplotlib is missing")
    def test_plot(self):
        self.succeed("solve", "poisson7:n=4", "--rhs", 2, "--monitor-true-residual", "--plot", "r.svg", ranks=2)
        self.assertGreater(len(list(ElementTree.parse(self.path("r.svg")).iter())), 50)
        self.fail_with(USAGE, "solve", "poisson7:n=4", "--plot", "r.txt", says="--plot")

    def test_prints_true_residuals(self):
        matrix, b = convection_diffusion(8, 3.0), np.random.default_rng(8).standard_normal((64, 2))
        write_binsparse(self.path("a.h5"), matrix)
        write_vector(self.path("b.npy"), b)
        result = self.succeed("solve", "a.h5", "--b", "b.npy", "--rhs", 2, "--solver", "gmres", "--restart", 7, "--output", "x.npy",
                              "--monitor-true-residual", "--json", "report.json", ranks=2)
        lines = np.array([line.split() for line in result.err.splitlines() if line.strip()[:1].isdigit()], dtype=float)
        report = json.loads(self.path("report.json").read_text())
        self.assertEqual(list(lines[:, 0]), list(range(1, report["iterations"] + 1)))
        for j, column in enumerate(report["columns"]):
            self.assertEqual(len(column["true_history"]), len(column["history"]))
            np.testing.assert_allclose(lines[: column["iterations"], 2 + 2 * j], column["true_history"][1:], rtol=1e-8)
            np.testing.assert_allclose(column["true_history"], column["history"], rtol=1e-3)
            x = read_vector(self.path("x.npy"), "x")[:, j]
            np.testing.assert_allclose(column["true_history"][-1], np.linalg.norm(b[:, j] - matrix @ x), rtol=1e-3)

    def test_ends_early_on_a_signal(self):
        for number, ranks in ((signal.SIGUSR1, 0), (signal.SIGINT, 0), (signal.SIGTERM, 0), (signal.SIGUSR1, 2)):
            with self.subTest(number=number, ranks=ranks):
                self.path("x.npy").unlink(missing_ok=True)
                code, out = self.interrupted("solve", "elasticity:n=24", "--null-space", "none", "--solver", "gmres", "--restart", 2, "--max-iterations", 10**8, "--rtol", "1e-14",
                                             "--output", "x.npy", "--no-measure", number=number, ranks=ranks)  # thousands of iterations: the signal comes long before the end
                self.assertEqual(code, NOT_CONVERGED, out)
                self.assertIn("interrupted", out)
                self.assertTrue(self.path("x.npy").exists())

    def test_progress_on_a_terminal_shows_the_iteration(self):
        result = self.call("solve", "elasticity:n=24", "--null-space", "none", "--solver", "gmres", "--restart", 2, "--max-iterations", 4000, "--rtol", "1e-14",
                           "--no-measure", "--no-advice", env={"SHARDMAT_PROGRESS": "on"})
        self.assertRegex(result.err, r"solving +iteration [\d,]+, residual \d\.\d+e[-+]\d+, [\d.e+]+ iterations/s")
        self.assertNotRegex(result.err, r"solving +\[")


if __name__ == "__main__":
    unittest.main()
