"""shardmat solve --preconditioner multigrid: answers, iterations, coordinates."""

import unittest

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

from support import INPUT, USAGE, CliTest, fem_matrix, read_vector

N = 10
BEAM = f"elasticity:n={N},uniform,clamp=0.1"


def grid_points():
    z, y, x = np.meshgrid(*[np.arange(N)] * 3, indexing="ij")
    return np.stack([x.ravel(), y.ravel(), z.ravel()], 1).astype(float)


def rigid_modes(points):
    """Three translations and three rotations, with a row for each unknown."""
    modes = np.zeros((len(points), 3, 6))
    modes[:, range(3), range(3)] = 1
    for axis in range(3):
        modes[:, :, 3 + axis] = np.cross(np.eye(3)[axis], points)
    return modes.reshape(-1, 6)


class Multigrid(CliTest):
    def solve(self, matrix, *options, ranks=0):
        return self.json_of("solve", matrix, "--preconditioner", "multigrid", "--backend", "host", "--b", "random", *options, ranks=ranks)

    def iterations(self, *arguments, **options):
        report = self.solve(*arguments, **options)
        (column,) = report["columns"]
        self.assertTrue(column["converged"], column)
        return column["iterations"], report["solver"]["preconditioner_note"]

    def test_coordinates_of_generators_and_files_do_the_same(self):
        few, note = self.iterations(BEAM)
        self.assertLessEqual(few, 14)
        self.assertIn("6 rigid-body modes", note)
        self.assertRegex(note, r"\d levels of 3000 ")
        np.save(self.path("xyz.npy"), grid_points())
        self.succeed("convert", BEAM, "beam.npz")  # which knows no coordinates
        for order in ("none", "rcm", "graph"):
            more = () if order == "none" else ("--reorder", order, *(("--parts", 3) if order == "graph" else ()))
            self.succeed("partition", "beam.npz", f"{order}.h5", *more)
            many, note = self.iterations(f"{order}.h5")
            self.assertGreater(many, few)
            self.assertIn("3 constants: no coordinates are given", note)
            for ranks in (1, 2, 3):
                found, note = self.iterations(f"{order}.h5", "--coordinates", "xyz.npy", ranks=ranks)
                self.assertIn("6 rigid-body modes", note)
                self.assertLessEqual(found, 16, (order, ranks))

    def test_x_is_scipys(self):
        a = fem_matrix("elasticity_bar")
        b = np.random.default_rng(5).standard_normal((a.shape[0], 3))
        np.save(self.path("b.npy"), b)
        x = scipy.sparse.linalg.spsolve(a.tocsc(), b)
        sp.save_npz(self.path("a.npz"), a)
        for ranks in (1, 2, 3):
            self.succeed("solve", "a.npz", "--preconditioner", "multigrid", "--backend", "host", "--b", "b.npy", "--rhs", 3, "--rtol",
                         1e-12, "--output", "x.npy", "--force", ranks=ranks)
            np.testing.assert_allclose(read_vector(self.path("x.npy"), "x"), x, rtol=1e-7, atol=1e-9 * abs(x).max())

    def test_settings_change_what_is_built(self):
        usual, note = self.iterations(BEAM)
        deep, deep_note = self.iterations(BEAM, "--coarse-size", 30)
        self.assertGreater(len(deep_note.split(" levels of ")[1].split()), len(note.split(" levels of ")[1].split()))
        self.assertLess(self.iterations(BEAM, "--smoother-degree", 4)[0], usual)
        self.assertGreater(self.iterations(BEAM, "--levels", 1)[0], usual)
        self.assertLessEqual(abs(self.iterations(BEAM, "--inner", "f64")[0] - usual), 1)

    def test_vectors_of_a_file_do_the_same_as_coordinates(self):
        few, _ = self.iterations(BEAM)
        many, _ = self.iterations(BEAM, "--near-null-space", "constants")
        self.assertGreater(many, few)
        modes = rigid_modes(grid_points())
        np.save(self.path("modes.npy"), modes)
        np.savetxt(self.path("modes.txt"), modes)
        self.succeed("partition", BEAM, "rcm.h5", "--reorder", "rcm")
        for matrix, file, ranks in (("rcm.h5", "modes.npy", 1), ("rcm.h5", "modes.npy", 3), (BEAM, "modes.txt", 2)):
            report = self.solve(matrix, "--near-null-space", f"file:{file}", ranks=ranks)
            self.assertLessEqual(report["iterations"], few + 2, (matrix, ranks))
            self.assertEqual(report["multigrid"]["near_null_space"], "6 given vectors")
            self.assertEqual((report["solver"]["near_null_space"], report["solver"]["near_null_vectors"]), ("auto", file))
        np.save(self.path("one.npy"), np.ones(3 * N**3))
        _, note = self.iterations(BEAM, "--near-null-space", "file:one.npy")
        self.assertIn("1 given vector;", note)

    def test_adaptive_vectors_need_no_coordinates(self):
        self.succeed("convert", "elasticity:nx=5,ny=5,nz=60,uniform,clamp=0.02", "bar.npz")
        self.succeed("partition", "bar.npz", "graph.h5", "--reorder", "graph", "--parts", 3)
        options = ("--near-null-space", "adaptive")
        many, few = self.iterations("bar.npz")[0], self.iterations("bar.npz", *options)[0]
        self.assertLess(2.5 * few, many)
        for matrix, ranks in (("bar.npz", 2), ("bar.npz", 3), ("graph.h5", 3)):
            report = self.solve(matrix, *options, ranks=ranks)
            self.assertLess(2 * report["iterations"], many, (matrix, ranks))
            self.assertRegex(report["multigrid"]["near_null_space"], r"^3 constants and 6 adaptive vectors: 16 cycles each, \d+\.\d s$")
            self.assertEqual(report["solver"]["near_null_space"], "adaptive")
        text = self.succeed("solve", "bar.npz", "--preconditioner", "multigrid", "--backend", "host").out
        self.assertIn("give the coordinates of the nodes, or take near_null_space adaptive (a longer set-up)", text)
        self.fail_with(USAGE, "solve", "convection_diffusion:n=6", "--preconditioner", "multigrid", "--backend", "host", *options,
                       says=["adaptive vectors are for symmetric matrices", "--near-null-space"])

    def test_bodies_that_nothing_holds(self):
        """Three bodies: one held, one that floats, one on a hinge. What A maps to 0 is found and removed."""
        n = 6
        self.succeed("convert", f"elasticity:n={n},uniform", "free.npz")
        free = sp.load_npz(self.path("free.npz")).tocsr()
        z, y, x = np.meshgrid(*[np.arange(n)] * 3, indexing="ij")
        points = np.stack([x.ravel(), y.ravel(), z.ravel()], 1).astype(float)
        held, hinged = free.tolil(), free.tolil()
        for i in np.flatnonzero(np.repeat(points[:, 2] == 0, 3)):
            held[i, i] += 10
        for i in np.flatnonzero(np.repeat((points[:, 1] == 0) & (points[:, 2] == 0), 3)):  # an edge: it can turn about it
            hinged[i, i] += 10
        a = sp.block_diag([held, free, hinged]).tocsr()
        sp.save_npz(self.path("a.npz"), a)
        np.save(self.path("xyz.npy"), np.concatenate([points, points + [9, 0, 0], points + [0, 9, 3]]))
        b = np.random.default_rng(7).standard_normal(a.shape[0])
        np.save(self.path("b.npy"), b)
        expected, _, rank, _ = np.linalg.lstsq(a.toarray(), b, rcond=1e-10)
        self.assertEqual(rank, a.shape[0] - 7)
        consistent = a @ expected
        for ranks in (1, 2, 3):
            for options in (("--preconditioner", "multigrid", "--coarse-size", 60), ("--solver", "cg", "--preconditioner", "block_jacobi",
                                                                                              "--null-space", "rigid"), ()):
                report = self.json_of("solve", "a.npz", "--backend", "host", "--coordinates", "xyz.npy", "--b", "b.npy", "--rtol", 1e-10, "--output",
                                      "x.npy", "--force", *options, ranks=ranks)
                (column,) = report["columns"]
                self.assertTrue(column["converged"], (options, column))
                self.assertEqual(report["solver"]["null_vectors"], 7)
                self.assertIn("7 motions of 2 bodies that nothing holds: 216 nodes from node 216 on, 216 nodes from node 432 on",
                              report["solver"]["null_space_found"])
                self.assertAlmostEqual(column["removed_from_b"], np.linalg.norm(b - consistent), places=8)
                np.testing.assert_allclose(read_vector(self.path("x.npy"), "x"), expected, atol=1e-6 * abs(expected).max())
        self.succeed("partition", "a.npz", "a.h5", "--coordinates", "xyz.npy")
        floating = self.json_of("info", "a.h5")["floating"]
        bodies = [{"first_node": 216, "nodes": 216, "motions": 6}, {"first_node": 432, "nodes": 216, "motions": 1}]
        self.assertEqual(floating, {"vectors": 7, "too_many": False, "bodies": bodies})
        told = "  maps to 0    7 motions of 2 bodies that nothing holds: 216 nodes from node 216 on, 216 nodes from node 432 on\n"
        self.assertIn(told, self.succeed("info", "a.h5").out)
        self.assertEqual(self.json_of("info", "a.npz")["floating"]["bodies"], [{"first_node": 216, "nodes": 216, "motions": 3}])  # no turns
        for option in ("--quick", "--stream"):
            self.assertNotIn("floating", self.json_of("info", "a.h5", option))
        self.assertEqual(self.json_of("info", f"elasticity:n={n},clamp=0.3")["floating"], {"vectors": 0, "too_many": False, "bodies": []})
        self.assertNotIn("floating", self.json_of("info", "convection_diffusion:n=6"))
        self.fail_with(USAGE, "solve", f"elasticity:n={n},clamp=0.3", "--null-space", "rigid", "--backend", "host", says="no body can move")
        for options in ((), ("--preconditioner", "multigrid")):
            self.fail_with(USAGE, "solve", "free.npz", "--null-space", "rigid", "--backend", "host", *options, says="need the coordinates of the nodes")

    def test_parts_of_a_laplacian(self):
        """A Laplacian of two parts maps a constant of each to 0."""
        self.succeed("convert", "poisson7:n=9,uniform", "held.npz")
        part = sp.load_npz(self.path("held.npz")).tolil()
        part.setdiag(part.diagonal() - np.asarray(part.sum(1)).ravel())
        a = sp.block_diag([part, 3 * part, sp.diags([2.0, 0.0])]).tocsr()  # and a row of zeros
        sp.save_npz(self.path("a.npz"), a)
        b = np.random.default_rng(8).standard_normal(a.shape[0])
        b[-1] = 0
        np.save(self.path("b.npy"), b)
        expected = np.linalg.lstsq(a.toarray(), b, rcond=1e-10)[0]
        for ranks in (1, 2, 3):
            report = self.json_of("solve", "a.npz", "--backend", "host", "--preconditioner", "multigrid", "--coarse-size", 30, "--b", "b.npy", "--rtol", 1e-10,
                                  "--output", "x.npy", "--force", ranks=ranks)
            self.assertEqual(report["solver"]["null_space_found"], "constants of 2 parts: 729 nodes from node 0 on, 729 nodes from node 729 on")
            np.testing.assert_allclose(read_vector(self.path("x.npy"), "x"), expected, atol=1e-7 * abs(expected).max())
            self.assertIn("  maps to 0    constants of 2 parts: 729 nodes from node 0 on", self.succeed("info", "a.npz").out)
            chosen = self.json_of("solve", "a.npz", "--backend", "host", "--b", "b.npy", ranks=ranks)
            self.assertEqual((chosen["solver"]["name"], chosen["solver"]["null_vectors"]), ("cg", 2))
        a = sp.block_diag([part] * 25).tocsr()
        sp.save_npz(self.path("a.npz"), a)
        np.save(self.path("b.npy"), a @ np.random.default_rng(9).standard_normal(a.shape[0]))  # consistent
        many = self.json_of("solve", "a.npz", "--backend", "host", "--preconditioner", "multigrid", "--b", "b.npy", ranks=2)["solver"]
        self.assertIn("more than 24 motions of parts that nothing holds", many["null_space_found"])
        self.assertNotIn("null_vectors", many)
        self.assertEqual(self.json_of("info", "a.npz")["floating"], {"vectors": 0, "too_many": True, "bodies": []})
        self.assertIn("  maps to 0    more than 24 motions", self.succeed("info", "a.npz").out)

    def test_report_tells_the_levels(self):
        for ranks in (0, 2):
            report = self.solve(BEAM, "--coarse-size", 30, ranks=ranks)["multigrid"]
            levels = report["levels"]
            self.assertEqual(levels[0]["unknowns"], 3 * N**3)
            self.assertEqual(levels[0]["nonzeros"] % 9, 0)
            self.assertGreaterEqual(len(levels), 3)
            self.assertNotIn("radius", levels[-1])
            self.assertTrue(all(1 < level["radius"] < 6 for level in levels[:-1]), levels)
            self.assertAlmostEqual(report["operator_complexity"], sum(level["nonzeros"] for level in levels) / levels[0]["nonzeros"])
            self.assertEqual(report["near_null_space"], "6 rigid-body modes")
            self.assertGreater(report["memory_bytes"], 4 * levels[0]["nonzeros"])
            self.assertGreater(report["setup_seconds"], 0)
            parts = {part["name"]: part["seconds"] for part in report["setup_parts"]}
            self.assertLessEqual({"rows", "aggregates", "prolongations", "coarse matrices", "smoothers"}, set(parts))
            self.assertLessEqual(sum(parts.values()), report["setup_seconds"])
            self.assertEqual([level["ranks"] for level in levels], [max(1, ranks)] + [1] * (len(levels) - 1))
        levels = self.solve(BEAM, "--coarse-size", 30, "--rank-size", 0, ranks=2)["multigrid"]["levels"]
        self.assertEqual(levels[1]["ranks"], 2)
        text = self.succeed("solve", BEAM, "--preconditioner", "multigrid", "--backend", "host").out
        self.assertRegex(text, r"Multigrid +unknowns +nonzeros +a row +radius\n  level 0 +3,000 +[0-9,]+ +[0-9.]+ +[0-9.]+\n  level 1 .* exact\n")
        self.assertNotIn("multigrid", self.json_of("solve", BEAM, "--preconditioner", "jacobi"))

    def test_mistakes(self):
        np.save(self.path("short.npy"), grid_points()[1:])
        solve = ("solve", BEAM, "--preconditioner", "multigrid", "--backend", "host")
        for ranks in (0, 2):
            self.fail_with(INPUT, *solve, "--coordinates", "short.npy", says=["short.npy", "1000"], ranks=ranks)
        self.fail_with(USAGE, "solve", BEAM, "--preconditioner", "jacobi", "--coordinates", "short.npy",
                       says=["coordinates", "the preconditioner multigrid"])
        modes = rigid_modes(grid_points())
        for name, wrong, says in (("few", modes[3:], ["few.npy", "3000"]), ("many", np.ones((3 * N**3, 13)), ["many.npy", "13 columns"]),
                                  ("zero", modes * (np.arange(6) != 3), "near-null vector 4 of 6 is 0"),
                                  ("nan", np.where(modes == 2, np.nan, modes), ["nan.npy", "nan"])):
            np.save(self.path(f"{name}.npy"), wrong)
            for ranks in (0, 2):
                self.fail_with(INPUT, *solve, "--near-null-space", f"file:{name}.npy", says=says, ranks=ranks)
        self.fail_with(INPUT, *solve, "--near-null-space", "file:missing.npy", says="missing.npy")
        self.fail_with(USAGE, *solve, "--near-null-space", "file:", says=["file:modes.npy", "--near-null-space"])
        self.fail_with(USAGE, *solve, "--near-null-space", "modes.npy", says="must be auto, rigid, constants or adaptive")
        self.fail_with(USAGE, "solve", BEAM, "--preconditioner", "jacobi", "--near-null-space", "file:few.npy", says="near_null_space is of no use")
        self.fail_with(USAGE, *solve, "--near-null-space", "file:few.npy", "--output", "few.npy", says="the near-null vectors itself")
        self.fail_with(USAGE, "solve", BEAM, "--preconditioner", "jacobi", "--coarse-size", 20, says="coarse_size is of no use")
        self.succeed("convert", BEAM, "beam.npz")
        self.fail_with(USAGE, "solve", "beam.npz", "--preconditioner", "multigrid", "--backend", "host", "--near-null-space", "rigid",
                       says="need the coordinates")


if __name__ == "__main__":
    unittest.main()
