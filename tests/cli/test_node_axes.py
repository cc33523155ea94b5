"""Shells whose nodes have five unknowns, or unknowns along axes of their own: coordinates with axes tell multigrid the rigid motions."""

import json
import unittest

import numpy as np
import scipy.sparse as sp

from support import INPUT, USAGE, CliTest


def panel(n, thickness=0.1):
    """A cylindrical panel of n × n degenerated solid elements, E = 1, ν = 0: three displacements and rotations about two tangents.

    The stiffness, points and axes (two tangents, then the director) of its nodes.
    """
    at = np.arange(n + 1) / n
    angle, along = (a.ravel() for a in np.meshgrid(2.0 * (at - 0.5), 1.5 * at))
    director = np.stack([np.sin(angle), 0 * angle, np.cos(angle)], -1)
    tangent = np.stack([np.cos(angle), 0 * angle, -np.sin(angle)], -1)
    axes = np.stack([tangent, np.cross(director, tangent), director], 1)
    points = director + np.outer(along, [0, 1, 0])
    grid = np.arange((n + 1)**2).reshape(n + 1, n + 1)
    nodes = np.stack([grid[:-1, :-1], grid[:-1, 1:], grid[1:, 1:], grid[1:, :-1]], -1).reshape(-1, 4)
    corner = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
    x, d, t = points[nodes], director[nodes], axes[nodes]
    turn = np.stack([np.cross(t[:, :, 0], d), np.cross(t[:, :, 1], d)], -1)  # what rotations do to the director
    symmetric = np.einsum("ik,jl->ijkl", np.eye(3), np.eye(3))
    symmetric = ((symmetric + symmetric.transpose(0, 1, 3, 2)) / 2).reshape(9, 9)
    k = np.zeros((len(nodes), 20, 20))
    for xi in corner / np.sqrt(3):
        for zeta in (-1 / np.sqrt(3), 1 / np.sqrt(3)):
            terms = 1 + corner * xi
            shape = terms.prod(axis=1) / 4
            slope = corner * terms[:, ::-1] / 4
            half = zeta * thickness / 2
            by_shape = np.concatenate([slope, np.zeros((4, 1))], 1), np.concatenate([slope * half, shape[:, None] * thickness / 2], 1)
            jacobian = np.einsum("ni,ena->eai", by_shape[0], x) + np.einsum("ni,ena->eai", by_shape[1], d)
            inverse = np.linalg.inv(jacobian)
            gradient = np.zeros((len(nodes), 3, 3, 4, 5))
            for a in range(3):
                gradient[:, a, :, :, a] = np.einsum("ni,eib->ebn", by_shape[0], inverse)
            gradient[:, :, :, :, 3:] = np.einsum("enar,ni,eib->eabnr", turn, by_shape[1], inverse)
            flat = gradient.reshape(-1, 9, 20)
            k += np.einsum("e,eia,ij,ejb->eab", np.linalg.det(jacobian), flat, symmetric, flat)
    unknowns = (5 * nodes[:, :, None] + np.arange(5)).reshape(-1, 20)
    places = np.repeat(unknowns, 20, axis=1).ravel(), np.tile(unknowns, 20).ravel()
    return sp.csr_matrix((k.ravel(), places)), points, axes


def motions(points, axes):
    """The six of a rigid body, in the unknowns of panel()."""
    modes = np.zeros((len(points), 5, 6))
    for c in range(3):
        about = np.eye(3)[c]
        modes[:, c, c] = 1
        modes[:, :3, 3 + c] = np.cross(about, points)
        modes[:, 3, 3 + c], modes[:, 4, 3 + c] = axes[:, 0] @ about, axes[:, 1] @ about
    return modes.reshape(-1, 6)


def along_own_axes(stiffness, axes):
    """The same system with displacements along the axes of the nodes."""
    turn = sp.block_diag([np.block([[own, np.zeros((3, 2))], [np.zeros((2, 3)), np.eye(2)]]) for own in axes], format="csr")
    return sp.csr_matrix(turn @ stiffness @ turn.T)


def clamped(stiffness, held):
    """Rows and columns of the held unknowns are those of the identity."""
    free = np.ones(stiffness.shape[0])
    free[held] = 0
    kept = sp.diags(free)
    return sp.csr_matrix(kept @ stiffness @ kept + sp.diags(1 - free))


class NodeAxes(CliTest):
    N = 24

    def setUp(self):
        super().setUp()
        self.k, self.points, self.axes = panel(self.N)
        self.held = np.flatnonzero(np.repeat(self.points[:, 1] == 0, 5))
        np.savetxt(self.path("xyz.txt"), self.points)
        np.savetxt(self.path("all.txt"), np.c_[self.points, self.axes.reshape(-1, 9)])

    def iterations(self, matrix, *options, ranks=0):
        """Of a solve whose answer is checked; and the coarse space."""
        sp.save_npz(self.path("k.npz"), matrix)
        b = np.random.default_rng(4).standard_normal(matrix.shape[0])
        np.save(self.path("b.npy"), b)
        self.succeed("solve", "k.npz", "--b", "b.npy", "--solver", "cg", "--preconditioner", "multigrid", "--node-block-size", 5,
                     "--backend", "host", "--output", "x.npy", "--json", "report.json", "--force", *options, ranks=ranks)
        x, report = np.load(self.path("x.npy")), json.loads(self.path("report.json").read_text())
        self.assertLessEqual(np.linalg.norm(matrix @ x - b), 1.01e-8 * np.linalg.norm(b))
        return report["iterations"], report["multigrid"]["near_null_space"]

    def test_five_unknowns(self):
        modes = motions(self.points, self.axes)
        self.assertLess(np.abs(self.k @ modes).max(), 1e-12 * np.abs(self.k).max())
        turned = along_own_axes(self.k, self.axes)
        for ranks in (0, 2, 3):
            for free, why in ((self.k, "6 rigid-body modes, displacements along the global axes"), (turned, "6 rigid-body modes along the axes of the nodes")):
                with self.subTest(ranks=ranks, why=why):
                    matrix = clamped(free, self.held)
                    known, told = self.iterations(matrix, "--coordinates", "all.txt", ranks=ranks)
                    self.assertEqual(told, why)
                    without, told = self.iterations(matrix, "--coordinates", "xyz.txt", ranks=ranks)
                    self.assertEqual(told, "5 constants: nodes have 5 unknowns and 3 coordinates, but no axes")
                    self.assertLess(5 * known, 4 * without)
        self.succeed("partition", "k.npz", "k.h5", "--coordinates", "all.txt", "--node-block-size", 5)
        self.succeed("solve", "k.h5", "--b", "b.npy", "--solver", "cg", "--preconditioner", "multigrid", "--json", "stored.json", ranks=2)
        self.assertEqual(json.loads(self.path("stored.json").read_text())["multigrid"]["near_null_space"], why)

    def test_a_free_shell(self):
        """Its null space is found from the axes, and b loses its part there."""
        sp.save_npz(self.path("k.npz"), self.k)
        modes = np.linalg.qr(motions(self.points, self.axes))[0]
        b = np.random.default_rng(5).standard_normal(self.k.shape[0])
        np.save(self.path("b.npy"), b)
        for ranks in (1, 2, 3):
            self.succeed("solve", "k.npz", "--b", "b.npy", "--solver", "cg", "--preconditioner", "multigrid", "--node-block-size", 5, "--coordinates",
                         "all.txt", "--output", "x.npy", "--json", "report.json", "--force", ranks=ranks)
            x, report = np.load(self.path("x.npy")), json.loads(self.path("report.json").read_text())
            self.assertEqual(report["solver"]["null_vectors"], 6)
            self.assertLess(np.abs(modes.T @ x).max(), 1e-8 * np.linalg.norm(x))
            left = b - modes @ (modes.T @ b)
            self.assertLess(np.linalg.norm(self.k @ x - left), 1.1e-8 * np.linalg.norm(left))

    def test_files_that_do_not_fit(self):
        sp.save_npz(self.path("k.npz"), clamped(self.k, self.held))
        lines = self.path("all.txt").read_text().splitlines()
        skewed = lines.copy()
        skewed[6] = " ".join(skewed[6].split()[:-1] + ["0.3"])
        for text, code, words in ((skewed, INPUT, r"bad\.txt, line 7: the axes of the node are not of length 1 and at right angles"),
                                  ([" ".join(line.split()[:11]) for line in lines], INPUT, r"bad\.txt: it has 11 columns; a node has 2 or 3 coordinates, or 3 and"),
                                  (lines[:-1], INPUT, rf"bad\.txt: it has {len(lines) - 1} lines, but the matrix has {len(lines)} nodes of 5")):
            self.path("bad.txt").write_text("\n".join(text) + "\n")
            for ranks in (0, 2):
                result = self.call("solve", "k.npz", "--preconditioner", "multigrid", "--node-block-size", 5, "--coordinates", "bad.txt", ranks=ranks)
                self.assertEqual(result.code, code, result)
                self.assertRegex(result.err, words)
        result = self.call("solve", "k.npz", "--preconditioner", "multigrid", "--node-block-size", 5, "--coordinates", "xyz.txt", "--near-null-space", "rigid")
        self.assertEqual(result.code, USAGE, result)
        self.assertIn("or 5 and axes", result.err)


if __name__ == "__main__":
    unittest.main()
