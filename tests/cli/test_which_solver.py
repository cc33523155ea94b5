"""What solve chooses, and the page "Which solver for my problem": every line gives an answer, and the options exist."""

import json
import re
import shutil
import unittest

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

from support import DATA, ROOT, CliTest

PAGE = (ROOT / "tools" / "which-solver.md").read_text()
OTHERS = (ROOT / "tools" / "other-libraries.md").read_text()
LINES = re.findall(r"`((?:mpirun -n \d )?shardmat [^`]*)` \|$", PAGE, re.M)
BEAM = "elasticity:n=8,uniform,clamp=0.1"


def saddle_point(n):
    """Stokes on a staggered grid of n × n cells, walls on three sides: the unknowns of each field one after another."""
    along = sp.diags([-1, 1], [-1, 0], (n, n))  # faces to cells
    second = along.T @ along
    every = sp.eye(n)
    laplacian = sp.kron(every, second) + sp.kron(second, every)
    divergence = -sp.hstack([sp.kron(every, along), sp.kron(along, every)])
    return sp.bmat([[sp.block_diag([laplacian, laplacian]), divergence.T], [divergence, None]]).tocsr()


class Page(CliTest):
    def setUp(self):
        super().setUp()
        shutil.copy(DATA / "box.h5", self.path("box.h5"))
        self.succeed("convert", BEAM, "K.npz")
        stiffness = sp.load_npz(self.path("K.npz")).tocsr()
        points = np.stack(np.meshgrid(*[np.arange(8.0)] * 3, indexing="ij"), -1).reshape(-1, 3)[:, ::-1]
        np.save(self.path("xyz.npy"), points)
        x, y, z = points.T
        modes = np.zeros((512, 3, 6))
        modes[:, 0, 0] = modes[:, 1, 1] = modes[:, 2, 2] = 1
        modes[:, 0, 3], modes[:, 1, 3], modes[:, 1, 4] = -y, x, -z
        modes[:, 2, 4], modes[:, 2, 5], modes[:, 0, 5] = y, -x, z
        np.save(self.path("modes.npy"), modes.reshape(-1, 6))
        np.save(self.path("f.npy"), np.random.default_rng(1).standard_normal(1536))
        sp.save_npz(self.path("S.npz"), sp.csr_matrix(stiffness - 1e-3 * sp.eye(1536)))
        flow = saddle_point(12)
        sp.save_npz(self.path("G.npz"), flow)
        np.save(self.path("g.npy"), np.random.default_rng(2).standard_normal(flow.shape[0]))
        penalty = stiffness.tolil()
        penalty[7, 7] = 1e30
        sp.save_npz(self.path("P.npz"), penalty.tocsr())

    def test_every_line_gives_an_answer(self):
        self.assertGreaterEqual(len(LINES), 14)
        for line in LINES:
            with self.subTest(line):
                words = line.split()
                ranks = int(words[2]) if words[0] == "mpirun" else 0
                self.succeed(*words[words.index("shardmat") + 1:], "--json", "report.json", ranks=ranks)
                report = json.loads(self.path("report.json").read_text())
                self.assertTrue(report["converged"])

    def test_options_exist(self):
        text = self.succeed("solve", "--help-all").out + self.succeed("eigen", "--help-all").out
        for option in set(re.findall(r"(?<![\w-])(--[a-z][a-z-]+)", PAGE + OTHERS)):
            self.assertRegex(text, rf"(?<![\w-]){option}(?![\w-])")

    def test_is_short(self):
        self.assertLessEqual(len(PAGE.splitlines()), 60)


class Choice(CliTest):
    def solution(self, matrix, b, ranks=0):
        sp.save_npz(self.path("a.npz"), matrix)
        np.save(self.path("b.npy"), b)
        self.succeed("solve", "a.npz", "--b", "b.npy", "--backend", "host", "--output", "x.npy", "--json", "report.json", "--force",
                     ranks=ranks)
        return np.load(self.path("x.npy")), json.loads(self.path("report.json").read_text())

    def test_without_symmetry(self):
        """A rotating wind: GMRES with Jacobi needs thousands of iterations."""
        for n, options, expected, most in ((80, (), ["bicgstab", "ilu"], 200), (80, ("--solver", "fgmres"), ["fgmres", "multigrid"], 60),
                                           (80, ("--solver", "gmres"), ["gmres", "multigrid"], 90), (20, (), ["bicgstab", "ilu"], 50),
                                           (20, ("--solver", "gmres"), ["gmres", "ilu"], 100)):
            self.succeed("solve", f"convection_diffusion:nx={n},ny={n},nz=1,wind=rotating,peclet=10", "--backend", "host", *options,
                         "--json", "report.json", "--force")
            report = json.loads(self.path("report.json").read_text())
            self.assertEqual([report["solver"][key] for key in ("name", "preconditioner")], expected)
            self.assertTrue(report["converged"])
            self.assertLessEqual(report["iterations"], most)
            if expected[1] == "multigrid":
                self.assertEqual(report["multigrid"]["cycle"], "K" if expected[0] == "fgmres" else "W")
                self.assertEqual((report["multigrid"]["smoother"], report["multigrid"]["smoothed"]), ("l1_jacobi", False))

    def test_chooses_and_falls_back(self):
        """A matrix that is not positive definite, though its diagonal is positive: conjugate gradients fail, and MINRES answers."""
        n = 75
        line = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(n, n))
        laplacian, b = sp.csr_matrix(sp.kronsum(line, line)), np.random.default_rng(1).standard_normal(n * n)
        matrix = sp.csr_matrix(laplacian - 0.02 * sp.identity(n * n))
        exact = scipy.sparse.linalg.spsolve(matrix.tocsc(), b)
        for ranks in (1, 2, 3):
            with self.subTest(ranks=ranks):
                x, report = self.solution(matrix, b, ranks)
                self.assertEqual([report["solver"][key] for key in ("name", "preconditioner")], ["minres", "block_jacobi"])
                falls = report["solver"]["fall_backs"]
                self.assertIn("cg with multigrid ended after", falls[0])
                self.assertIn("minres with block_jacobi", falls[-1])
                self.assertEqual(len(falls), 2)
                attempts = report["solver"]["attempts"]
                self.assertEqual([a["name"] for a in attempts][::2], ["cg", "minres"])
                self.assertEqual(sum(a["iterations"] for a in attempts), report["iterations"])
                self.assertIn(f"cg with multigrid ended after {attempts[0]['iterations']} iterations", falls[0])
                column = report["columns"][0]
                self.assertEqual(column["reason"], "converged_rtol")
                self.assertEqual(len(column["history"]), column["iterations"] + 1)
                np.testing.assert_allclose(x, exact, atol=1e-6 * np.abs(exact).max())
        _, report = self.solution(laplacian, b)
        self.assertEqual(report["solver"]["preconditioner"], "multigrid")
        self.assertNotIn("fall_backs", report["solver"])
        self.assertNotIn("attempts", report["solver"])
        self.assertLess(report["iterations"], 20)
        self.assertLess(report["convergence_factor"], 0.5)

    def test_adaptive_vectors_follow_constants(self):
        """A long beam without coordinates: with constants the residual stays for hundreds of iterations."""
        self.succeed("convert", "elasticity:size=1x1x200,n=3,clamp=0.001,uniform", "beam.npz")
        for ranks in (1, 2, 3):
            with self.subTest(ranks=ranks):
                self.succeed("solve", "beam.npz", "--backend", "host", "--json", "report.json", "--force", ranks=ranks)
                report = json.loads(self.path("report.json").read_text())
                self.assertEqual([report["solver"][key] for key in ("name", "preconditioner")], ["cg", "multigrid"])
                fall, = report["solver"]["fall_backs"]
                self.assertIn("cg with multigrid ended after", fall)
                self.assertIn("with adaptive vectors as its near null space", fall)
                self.assertIn("3 constants and 6 adaptive vectors", report["multigrid"]["near_null_space"])
                self.assertTrue(report["converged"])
                column = report["columns"][0]
                self.assertLess(column["true_residual"], 1e-5 * column["norm_of_b"])
                self.assertLess(report["iterations"], 500)
        for given in (["--near-null-space", "constants"], ["--preconditioner", "multigrid"]):
            out = self.call("solve", "beam.npz", "--backend", "host", "--max-iterations", 300, *given).out
            self.assertNotIn("adaptive vectors as its", out)


if __name__ == "__main__":
    unittest.main()
