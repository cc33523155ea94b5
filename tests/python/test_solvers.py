"""Solvers and PageRank of the package, against SciPy and NumPy."""

import inspect
import re
import unittest

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl

import shardmat
from checks import elastic_plate, rigid_modes, tridiagonal

# A line of shardmat.solver_settings().
SETTING = re.compile(r"(?P<name>\w+): (?:of the (?P<of>solver|preconditioner) (?P<users>[\w, ]+?): )?.*"
                     r"\. (?:One of (?P<choices>[\w, ]+?)|Values: (?P<values>.*?))(?:\. Default: (?P<default>.*))?\.$")


def value_of(setting):
    """A value that a setting takes, as Python has it: of a word, another one than its default."""
    if setting["name"] == "near_null_space":
        return "constants"  # rigid needs coordinates
    if setting["choices"]:
        return next(word for word in re.split(", | or ", setting["choices"]) if word != setting["default"])
    for pattern, value in (("0 or 1$", lambda found: True), (r"a whole number (?:from|of) (\d+) (?:to|or)", lambda found: int(found[1]) + 1),
                           (r"(\d+) or more", lambda found: float(found[1]) + 0.5), (r"above (\d+)", lambda found: float(found[1]) + 0.5)):
        if found := re.match(pattern, setting["values"]):
            return value(found)
    return setting["default"]


class Solvers(unittest.TestCase):
    def test_columns_monitor_history(self):
        a = (tridiagonal(60) + tridiagonal(60).T).tocsr()
        x = np.random.default_rng(9).random((60, 3))
        seen = []
        m = shardmat.Matrix.from_scipy(a)
        solver = m.solver(columns=3, rtol=1e-12, variant="single_reduction", monitor=lambda n, norms: seen.append((n, len(norms))))
        np.testing.assert_allclose(solver.solve(a @ x), x, rtol=1e-9)
        self.assertEqual(len(solver.results), 3)
        self.assertEqual(len(solver.results[1]["history"]), solver.results[1]["iterations"] + 1)
        self.assertTrue(seen and all(columns == 3 for _, columns in seen))

    def test_help_lists_the_options(self):
        m = shardmat.Matrix.from_scipy(tridiagonal(60) + tridiagonal(60).T)
        settings = [SETTING.match(line) for line in shardmat.solver_settings().splitlines()]
        names = [setting["name"] for setting in settings] + ["M", "columns", "coordinates", "monitor", "watch"]
        told = {name: " ".join(text.split()) for name, text in re.findall(r"^    (\w+): (.*(?:\n        .*)*)", shardmat.Solver.__doc__, re.M)}
        self.assertEqual(sorted(told), sorted(names))
        for name, text in (("restart", "a whole number from 1 to 100000. Default: 30."), ("assume_symmetric", "True or False. Default: False."),
                           ("cycle", "One of auto, V, W or K. Default: auto."), ("null_space", "Or vectors that span it"), ("M", "preconditioner.")):
            self.assertIn(text, told[name])
        for documented in (m.solve, m.solver):
            self.assertIn("help(shardmat.Solver) lists the options", documented.__doc__)

        given = {setting["name"]: (value_of(setting), setting["of"], setting["users"]) for setting in settings}
        given |= {"coordinates": (np.zeros((60, 3)), "preconditioner", "multigrid"), "monitor": (print, None, None), "watch": (print, None, None),
                  "columns": (2, None, None), "M": (sp.eye(60), None, None)}
        self.assertEqual(set(given), set(names))
        for name, (value, of, users) in given.items():
            plain = {"solver": "cg", "preconditioner": "auto" if name == "M" else "none"}
            user = {} if of is None else {of: "auto" if "auto" in users else users}
            with self.subTest(option=name, value=value, user=user):
                m.solver(**{**plain, **user, name: value}).close()
                if of is not None:
                    with self.assertRaisesRegex(ValueError, f"{name} (is|are) of no use with the .*; leave (it|them) out, or take"):
                        m.solver(**{**plain, "solver": "minres", name: value})
        for option, value, error, words in (("tol", 1e-3, TypeError, "no option 'tol'.*help"), ("restart", [5], TypeError, "restart is a list; it must be"),
                                            ("restart", 5.5, ValueError, "restart must be a whole number from 1 to 100000"),
                                            ("cycle", "U", ValueError, "cycle must be auto, V, W or K"), ("cycle", "V W", ValueError, "must be one word")):
            with self.assertRaisesRegex(error, words):
                m.solver(**{option: value})

    def test_multigrid_takes_coordinates(self):
        a, xyz = elastic_plate(80, 4)
        m, b = shardmat.Matrix.from_scipy(a), np.ones(a.shape[0])
        options = {"preconditioner": "multigrid", "coarse_size": 30, "inner": "f64"}  # f32 would round differently from run to run

        def iterations(**more):
            solver = m.solver(**options, **more)
            np.testing.assert_allclose(a @ solver.solve(b), b, atol=1e-5)
            return solver.results[0]["iterations"]

        few = iterations(coordinates=xyz)
        self.assertGreater(iterations(), 1.5 * few)
        np.testing.assert_allclose(m.solve(b, coordinates=xyz, **options), spl.spsolve(a.tocsc(), b), rtol=1e-4)
        modes = rigid_modes(xyz)
        for same in (xyz.tolist(), xyz.astype(np.float32), np.asfortranarray(xyz), np.repeat(xyz, 2, axis=0)[::2]):
            self.assertEqual(iterations(coordinates=same), few)
        for same in (modes, np.asfortranarray(modes.astype(np.float32)), 7 * modes[:, ::-1]):
            self.assertLessEqual(abs(iterations(near_null_space=same) - few), 1)
        self.assertGreater(iterations(near_null_space=modes[:, :2]), few)

        solver = m.solver(coordinates=xyz, **options)
        levels, found = solver.levels, solver.multigrid
        self.assertEqual((levels[0]["unknowns"], levels[0]["nonzeros"]), (a.shape[0], a.tobsr((2, 2)).nnz))
        self.assertGreaterEqual(len(levels), 3)
        self.assertIsNone(levels[-1]["radius"])
        self.assertTrue(all(1 < level["radius"] < 6 for level in levels[:-1]), levels)
        self.assertAlmostEqual(found["operator_complexity"], sum(level["nonzeros"] for level in levels) / levels[0]["nonzeros"])
        self.assertEqual((found["near_null_space"], found["cycle"], found["smoother"]), ("3 rigid-body modes", "V", "chebyshev"))
        self.assertGreater(found["memory_bytes"], 4 * a.nnz)
        self.assertGreater(found["setup_seconds"], 0)
        plain = m.solver()
        self.assertEqual((plain.levels, plain.multigrid), ([], None))

    def test_coordinates_that_do_not_fit(self):
        a, xyz = elastic_plate(4, 3)
        m = shardmat.Matrix.from_scipy(a)
        nan, zero = xyz.copy(), rigid_modes(xyz)
        nan[3, 1], zero[:, 2] = np.nan, 0
        for words, options in (("coordinates has 1 dim", {"coordinates": xyz.ravel()}),
                               ("coordinates of 19 nodes are given, but this rank has 20 nodes of 2", {"coordinates": xyz[1:]}),
                               ("dimensions must be 2 or 3", {"coordinates": np.zeros((20, 4))}),
                               ("coordinates hold NaN", {"coordinates": nan}),
                               ("coordinates has type complex128", {"coordinates": xyz.astype(complex)}),
                               ("rigid-body modes need as many unknowns a node", {"coordinates": np.zeros((20, 3)), "near_null_space": "rigid"}),
                               ("near_null_space has 20 rows; this rank has 40", {"near_null_space": xyz}),
                               ("near_null_space has 1 dim", {"near_null_space": np.ones(40)}),
                               ("number of near_null_vectors must be 1 to 12", {"near_null_space": np.ones((40, 13))}),
                               ("vector 3 of 3 is 0", {"near_null_space": zero}),
                               ("vectors hold NaN", {"near_null_space": np.full((40, 1), np.inf)})):
            with self.assertRaisesRegex(ValueError, words):
                m.solver(preconditioner="multigrid", **options)
        for options in ({"coordinates": xyz}, {"near_null_space": rigid_modes(xyz)}):
            with self.assertRaisesRegex(ValueError, "are of no use with the preconditioner jacobi; leave them out"):
                m.solve(np.ones(40), preconditioner="jacobi", **options)

    def test_b_of_zeros_has_the_answer_zero(self):
        a = (tridiagonal(60) + tridiagonal(60).T).tocsr()
        m = shardmat.Matrix.from_scipy(a)
        for name in ("cg", "gmres", "fgmres", "bicgstab", "minres"):
            self.assertTrue((m.solve(np.zeros(60), np.full(60, np.nan), solver=name) == 0).all(), name)
            b, x0 = np.zeros((60, 3)), np.full((60, 3), 7.0)
            b[:, 1], x0[:, [0, 2]] = np.random.default_rng(1).random(60), [np.nan, np.inf]
            x = m.solver(name, columns=3, rtol=1e-11).solve(b, x0)
            self.assertTrue((x[:, [0, 2]] == 0).all(), name)
            np.testing.assert_allclose(x[:, 1], spl.spsolve(a.tocsc(), b[:, 1]), rtol=1e-8)

    def test_a_source_knows_its_nodes(self):
        m = shardmat.Matrix.from_file("elasticity:n=8,uniform,clamp=0.1")
        options = {"preconditioner": "multigrid", "coarse_size": 100, "inner": "f64"}
        b = np.ones(m.own_shape[0])

        def solved(**more):
            solver = m.solver(**options, **more)
            solver.solve(b)
            return solver.results[0]["iterations"], solver.multigrid["near_null_space"]

        few, modes = solved()
        self.assertEqual(modes, "6 rigid-body modes")
        many, modes = solved(near_null_space="constants")
        self.assertEqual(modes, "3 constants")
        self.assertLess(few, many)
        one_place = np.zeros((len(b) // 3, 3))  # what is given goes first
        self.assertNotEqual(solved(coordinates=one_place), (few, "6 rigid-body modes"))

    def test_vectors_of_a_null_space(self):
        free, xy = elastic_plate(30, 4, hold=False)
        modes, b = rigid_modes(xy), np.random.default_rng(4).standard_normal(free.shape[0])
        self.assertLess(abs(free @ modes).max(), 1e-9)
        expected = np.linalg.lstsq(free.toarray(), b, rcond=1e-11)[0]
        m = shardmat.Matrix.from_scipy(free)
        for options in ({"preconditioner": "jacobi"}, {"preconditioner": "multigrid", "coordinates": xy}):
            solver = m.solver("cg", null_space=modes @ np.diag([1, 30, 1e-4]), rtol=1e-11, **options)
            x = solver.solve(b)
            np.testing.assert_allclose(x, expected, atol=1e-6 * abs(expected).max())
            self.assertAlmostEqual(solver.results[0]["removed_from_b"], np.linalg.norm(b - free @ expected), places=8)
        for words, space in (("null_space has 10 rows; this rank has", np.ones((10, 1))), ("does not map to 0", np.arange(len(b))[:, None]),
                             ("combination of those before", np.hstack([modes, modes[:, :1]])), ("must be 1 to 24", np.ones((len(b), 25)))):
            with self.assertRaisesRegex(ValueError, words):
                m.solver(null_space=space)
        circle = sp.eye(40) - sp.csr_matrix(np.roll(np.eye(40), 1, axis=1))
        for factors, refused in ((np.ones(40), False), (np.arange(1, 41), True)):
            upwind = shardmat.Matrix.from_scipy((sp.diags(factors) @ circle).tocsr())
            if refused:
                with self.assertRaisesRegex(ValueError, "its transpose does not"):
                    upwind.solver("gmres", "none", null_space=np.ones((40, 1)))
            else:
                upwind.solver("gmres", "none", null_space=np.ones((40, 1)))

    def test_what_a_null_space_takes_from_b(self):
        n = 50
        a = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(n, n)).tolil()
        a[0, 0] = a[n - 1, n - 1] = 1
        b = np.random.default_rng(2).random(n)
        m = shardmat.Matrix.from_scipy(a.tocsr())
        for name in ("cg", "minres", "gmres"):
            solver = m.solver(name, null_space="constant", rtol=1e-10)
            x = solver.solve(b)
            (result,) = solver.results
            self.assertAlmostEqual(result["removed_from_b"], abs(b.mean()) * np.sqrt(n), places=12)
            self.assertAlmostEqual(result["norm_of_b"], np.linalg.norm(b - b.mean()), places=12)
            self.assertAlmostEqual(np.linalg.norm(b - a @ x), np.hypot(result["true_residual"], result["removed_from_b"]), places=12)
        plain = m.solver("gmres", rtol=1e-10)
        plain.solve(a @ b)
        self.assertLess(plain.results[0]["removed_from_b"], 1e-15)

    def test_tolerance_that_no_one_gave(self):
        a = (tridiagonal(60) + tridiagonal(60).T).tocsr()
        b = np.ones(60)
        for dtype, expected in ((np.float64, 1e-8), (np.float32, 1e-5)):
            x = shardmat.Matrix.from_scipy(a.astype(dtype)).solve(b.astype(dtype))
            self.assertLessEqual(np.linalg.norm(b - a @ x), 1.1 * expected * np.linalg.norm(b))

    def test_not_converged(self):
        a = shardmat.Matrix.from_file("poisson7:n=8")
        with self.assertRaises(shardmat.NotConvergedError) as caught:
            a.solve(np.ones(512), max_iterations=2)
        self.assertEqual(caught.exception.results[0]["iterations"], 2)
        self.assertTrue(np.any(caught.exception.x))
        with self.assertRaisesRegex(shardmat.UsageError, "divergence_tolerance must be above 1"):
            a.solver(divergence_tolerance=0.5)
        with self.assertRaisesRegex(shardmat.UsageError, "bicgstab.*choose among auto, cg"):
            a.solve(np.ones(512), solver="bicgstb")
        with self.assertRaisesRegex(TypeError, "tolerance"):
            a.solve(np.ones(512), tolerance=1)

    def test_scipy(self):
        a = (tridiagonal(80) + tridiagonal(80).T).tocsr()
        m = shardmat.Matrix.from_scipy(a)
        b = a @ np.ones(80)
        tolerance = "rtol" if "rtol" in inspect.signature(spl.gmres).parameters else "tol"  # SciPy renamed it in 1.12
        x, info = spl.gmres(m, b, atol=0, **{tolerance: 1e-10})
        self.assertEqual(info, 0)
        np.testing.assert_allclose(x, np.ones(80), rtol=1e-7)
        np.testing.assert_allclose(spl.eigsh(m, k=3, return_eigenvectors=False), spl.eigsh(a, k=3, return_eigenvectors=False))
        tall = sp.vstack([a, sp.eye(80)]).tocsr()
        of_tall = shardmat.Matrix.from_scipy(tall)
        np.testing.assert_allclose(spl.lsqr(of_tall, tall @ np.ones(80), atol=1e-12, btol=1e-12)[0], np.ones(80))


class OwnPreconditioners(unittest.TestCase):
    def setUp(self):
        rng = np.random.default_rng(4)
        scales = sp.diags(10 ** rng.uniform(-2, 2, 120))
        self.a = sp.csr_matrix(scales @ (tridiagonal(120) + tridiagonal(120).T + sp.eye(120)) @ scales)
        self.m, self.b = shardmat.Matrix.from_scipy(self.a), rng.standard_normal(120)
        self.x = spl.spsolve(self.a.tocsc(), self.b)

    def solved(self, b=None, **options):
        b = self.b if b is None else b
        solver = self.m.solver(rtol=1e-10, columns=1 if b.ndim == 1 else b.shape[1], **options)
        np.testing.assert_allclose(self.a @ solver.solve(b), b, atol=1e-8)
        return solver.results[0]["iterations"]

    def test_functions_operators_and_matrices(self):
        inverse = 1 / self.a.diagonal()
        shapes = []

        def function(r):
            shapes.append(r.shape)
            return (r.T * inverse).T

        expected = self.solved(solver="cg", preconditioner="jacobi")
        self.assertLess(expected, 60)
        for given in (function, sp.diags(inverse), np.diag(inverse), spl.aslinearoperator(sp.diags(inverse).tocsr())):
            self.assertLessEqual(abs(self.solved(solver="cg", preconditioner=given) - expected), 2)
            self.assertLessEqual(abs(self.solved(solver="cg", M=given) - expected), 2)
            self.solved(solver="fgmres", M=given)
        columns = np.stack([self.b, 3 * self.b[::-1], self.b ** 2], 1)
        self.solved(columns, solver="cg", M=function)
        self.solved(columns, solver="cg", M=sp.diags(inverse))
        self.assertEqual(set(shapes), {(120,), (120, 3)})
        for method in ("gmres", "bicgstab", "minres", "chebyshev"):
            self.solved(solver=method, M=sp.diags(inverse))
        f32 = shardmat.Matrix.from_scipy(self.a.astype(np.float32))
        f32.solve(self.b, solver="cg", M=lambda r: (self.assertEqual(r.dtype, np.float32), r * inverse.astype(np.float32))[1])

    def test_flexible_forgives_what_classic_does_not(self):
        factor = spl.spilu(self.a.tocsc(), drop_tol=1e-3)
        unsymmetric = sp.csr_matrix(np.diag(self.a.diagonal() ** -0.5) @ (np.eye(120) + 0.4 * np.eye(120, k=1)) @ np.diag(self.a.diagonal() ** -0.5))
        many = self.m.solver("cg", M=unsymmetric, variant="classic", rtol=1e-10, max_iterations=1000)
        flexible = self.solved(solver="cg", M=unsymmetric)
        with self.assertRaises(shardmat.NotConvergedError):
            many.solve(self.b)
        self.assertLess(flexible, 200)
        self.assertLess(self.solved(solver="cg", M=factor.solve), 10)

    def test_what_goes_wrong(self):
        with self.assertRaisesRegex(ZeroDivisionError, "by zero"):
            self.m.solve(self.b, solver="cg", M=lambda r: 1 // 0)
        solver = self.m.solver("cg", M=lambda r: r[:-1])
        for _ in range(2):
            with self.assertRaisesRegex(ValueError, r"shape \(119,\) for one of shape \(120,\)"):
                solver.solve(self.b)
        with self.assertRaisesRegex(TypeError, "Cannot cast"):
            self.m.solve(self.b, solver="cg", M=lambda r: r + 1j)
        with self.assertRaisesRegex(ValueError, "dimension mismatch"):
            self.m.solve(self.b, solver="cg", M=sp.eye(5))
        with self.assertRaisesRegex(ValueError, "two words for one thing"):
            self.m.solve(self.b, preconditioner="jacobi", M=sp.eye(120))
        with self.assertRaisesRegex(ValueError, "say that it is linear"):
            self.m.solve(self.b, solver="bicgstab", M=lambda r: r)
        with self.assertRaises(shardmat.NotConvergedError) as caught:
            self.m.solve(self.b, solver="cg", M=lambda r: r * np.nan)
        self.assertNotIn("converged_", caught.exception.results[0]["reason"])

    def test_a_preconditioner_alone(self):
        solver = self.m.solver("cg", "jacobi", rtol=1e-10)
        np.testing.assert_allclose(solver.precondition(self.b), self.b / self.a.diagonal(), rtol=1e-14)
        x, info = spl.cg(self.a, self.b, M=solver.aspreconditioner(), atol=1e-9)
        self.assertEqual(info, 0)
        np.testing.assert_allclose(x, self.x, rtol=1e-2, atol=1e-4)

    def test_watch_gets_x(self):
        for method in ("cg", "minres", "gmres", "bicgstab", "fgmres"):
            seen = []
            solver = self.m.solver(method, "jacobi", watch=lambda x: seen.append(x), rtol=1e-10)
            x = solver.solve(self.b)
            self.assertEqual(len(seen), solver.results[0]["iterations"], method)
            np.testing.assert_allclose(seen[-1], x, rtol=1e-7, err_msg=method)
            norms = [np.linalg.norm(self.b - self.a @ one) for one in seen]
            np.testing.assert_allclose(norms, solver.results[0]["history"][1:], rtol=1e-3, atol=1e-12, err_msg=method)
        with self.assertRaisesRegex(shardmat.NotConvergedError, "told to end"):
            self.m.solve(self.b, solver="cg", watch=lambda x: True)


class Graphs(unittest.TestCase):
    def test_pagerank(self):
        a = sp.random(60, 60, 0.1, random_state=11).tocsr()
        scores = shardmat.pagerank(a, tolerance=1e-13)
        sums = np.asarray(a.sum(axis=1)).ravel()
        walk = sp.diags(np.where(sums > 0, 1 / np.where(sums > 0, sums, 1), 0)) @ a
        expected = np.full(60, 1 / 60)
        for _ in range(300):
            y = 0.85 * (walk.T @ expected)
            expected = y + (1 - y.sum()) / 60
        np.testing.assert_allclose(scores, expected, atol=1e-11)
        seeds = shardmat.pagerank(a, seeds=[3, 7])
        self.assertEqual(seeds.shape, (60, 2))
        self.assertEqual(list(seeds.argmax(axis=0)), [3, 7])
        with self.assertRaises(shardmat.NotConvergedError) as caught:
            shardmat.pagerank(a, max_iterations=1)
        self.assertEqual(caught.exception.x.shape, (60,))
        self.assertEqual(shardmat.pagerank("poisson7:n=4", unweighted=True).shape, (64,))
        np.testing.assert_array_equal(shardmat.pagerank(a.toarray(), tolerance=1e-13), scores)
        for wrong in ([[1, 0], [0, 1]], None, 3):
            with self.assertRaisesRegex(TypeError, "a matrix of SciPy or NumPy, or the name of a matrix file"):
                shardmat.pagerank(wrong)
        with self.assertRaisesRegex(ValueError, "two dimensions; this array has 1"):
            shardmat.pagerank(np.ones(3))


if __name__ == "__main__":
    unittest.main()
