"""Where nodes lie, which are in the middle of an edge, and near-null vectors: from generators, from files of other programs, and
kept by shard files in any order."""

import shutil
import unittest

import h5py
import numpy as np
import scipy.sparse as sp

from support import DATA, INPUT, USAGE, CliTest, read_binsparse
from test_multigrid import BEAM, N, grid_points, rigid_modes

BAR = "elasticity:mesh=box.h5,degree=2"  # 833 nodes, 689 of them in the middle of an edge


class NodeFiles(CliTest):
    def setUp(self):
        super().setUp()
        shutil.copy(DATA / "box.h5", self.path("box.h5"))

    def solve(self, matrix, *options, ranks=0):
        return self.json_of("solve", matrix, "--preconditioner", "multigrid", "--backend", "host", "--b", "random", *options, ranks=ranks)

    def near_null(self, matrix, *options, ranks=0):
        """Iterations, and the near-null space that they were taken with."""
        report = self.solve(matrix, *options, ranks=ranks)
        self.assertTrue(report["converged"], report["columns"])
        return report["iterations"], report["multigrid"]["near_null_space"]

    def known(self, name):
        return self.json_of("info", name, "--quick").get("nodes")

    def stored(self, name):
        """The matrix of a shard file, and what it knows of its nodes."""
        with h5py.File(self.path(name)) as file:
            group = file["shardmat"]
            return read_binsparse(self.path(name))[1], {key: group[key][:] for key in ("coordinates", "mid_edges", "near_null_vectors")
                                                        if key in group}


class ShardFiles(NodeFiles):
    def test_iterations_are_those_of_the_source(self):
        expected = {ranks: self.near_null(BEAM, ranks=ranks)[0] for ranks in (1, 2, 3)}
        for order, options in (("plain", ()), ("length", ("--sort", "global")), ("rcm", ("--reorder", "rcm"))):
            said = self.succeed("partition", BEAM, f"{order}.h5", *options).out
            self.assertIn(f"{order}.h5: with coordinates of 1,000 nodes\n", said)
            for ranks in (1, 2, 3):
                iterations, modes = self.near_null(f"{order}.h5", ranks=ranks)
                self.assertEqual(modes, "6 rigid-body modes")
                if order == "plain":
                    self.assertEqual(iterations, expected[ranks])
                self.assertLessEqual(iterations, expected[ranks] + 2, (order, ranks))
            np.testing.assert_array_equal(self.stored(f"{order}.h5")[1]["coordinates"], self.stored("plain.h5")[1]["coordinates"])

    def test_all_of_it_goes_through_every_command(self):
        np.save(self.path("modes.npy"), rigid_modes(grid_points()))
        options = ("--near-null-space", "file:modes.npy")
        self.succeed("partition", BEAM, "a.h5", "--sort", "global", *options)
        self.succeed("partition", BAR, "q.h5", "--reorder", "rcm")
        self.assertEqual(self.known("a.h5"), {"placed": 1000, "mid_edges": 0, "near_null_vectors": 6})
        self.assertEqual(self.known("q.h5"), {"placed": 833, "mid_edges": 689, "near_null_vectors": 0})
        self.assertEqual(self.known(BAR), self.known("q.h5"))
        self.assertIn("  known        coordinates of 833 nodes, 689 mid-edge nodes\n", self.succeed("info", "q.h5").out)
        for name in ("a.h5", "q.h5"):
            _, facts = self.stored(name)
            np.save(self.path("values.npy"), np.arange(1.0, 1 + read_binsparse(self.path(name))[1].nnz))
            self.succeed("convert", name, "copy.h5", "--force")
            self.succeed("convert", name, "values.h5", "--values", "values.npy", "--force")
            self.succeed("partition", "copy.h5", "again.h5", "--parts", 3, "--force")
            self.succeed("partition", BAR, "made.h5", "--force")
            for copy in ("copy.h5", "values.h5", "again.h5"):
                found = self.stored(copy)[1]
                self.assertEqual(sorted(found), sorted(facts))
                for key, values in facts.items():
                    np.testing.assert_array_equal(found[key], values)
                self.assertIn(self.succeed("info", name, "--quick").out.split("known        ")[1].split("\n")[0],
                              self.succeed("verify-file", copy).out)
        np.testing.assert_array_equal(self.stored("made.h5")[1]["mid_edges"], facts["mid_edges"])
        x, middles = facts["coordinates"], facts["mid_edges"]
        np.testing.assert_allclose(x[middles[:, 0]], (x[middles[:, 1]] + x[middles[:, 2]]) / 2, atol=1e-12)  # edges are straight
        for ranks in (1, 2, 3):
            self.assertEqual(self.near_null("a.h5", ranks=ranks)[1], "6 given vectors")
            self.assertEqual(self.near_null("a.h5", "--near-null-space", "constants", ranks=ranks)[1], "3 constants")

    def test_ranks_that_order_the_rows_together_keep_it(self):
        result = self.call("partition", BAR, "ranks.h5", "--parts", 2, "--reorder", "graph", ranks=2)
        if result.code == USAGE and "PT-Scotch" in result.err:
            self.skipTest("a build without PT-Scotch")
        self.assertEqual(result.code, 0, result)
        self.assertEqual(self.known("ranks.h5"), self.known(BAR))
        self.succeed("verify-file", "ranks.h5")

    def test_damage_is_found(self):
        np.save(self.path("modes.npy"), rigid_modes(grid_points()))
        self.succeed("partition", BEAM, "good.h5", "--near-null-space", "file:modes.npy")
        self.succeed("partition", BAR, "quadratic.h5")
        for name, file, digits in (("coordinates", "good.h5", 1.5), ("near_null_vectors", "good.h5", 1.5), ("mid_edges", "quadratic.h5", 3)):
            shutil.copy(self.path(file), self.path("bad.h5"))
            with h5py.File(self.path("bad.h5"), "a") as opened:
                opened[f"shardmat/{name}"][500, 0] = digits
            for ranks in (0, 2):
                self.fail_with(INPUT, "solve", "bad.h5", "--preconditioner", "multigrid", "--backend", "host",
                               says=["bad.h5", f"/shardmat/{name}", "checksum", "It was made by"], ranks=ranks)
            self.fail_with(INPUT, "verify-file", "bad.h5", says=["bad.h5", f"/shardmat/{name}", "checksum"])
            self.succeed("multiply", "bad.h5", "--verify", "--iterations", 0, "--no-measure")

    def test_files_without_it_are_read(self):
        self.succeed("partition", BEAM, "old.h5")
        with h5py.File(self.path("old.h5"), "a") as file:
            del file["shardmat/coordinates"], file["shardmat/coordinates_checksums"]
        self.succeed("verify-file", "old.h5")
        self.assertIsNone(self.known("old.h5"))
        self.assertIn("no coordinates", self.near_null("old.h5")[1])
        np.save(self.path("xyz.npy"), grid_points())
        self.succeed("partition", "old.h5", "new.h5", "--coordinates", "xyz.npy")
        self.assertEqual(self.near_null("new.h5")[1], "6 rigid-body modes")


class OtherPrograms(NodeFiles):
    """A matrix whose rows have the numbers of another program, and its input file."""

    def setUp(self):
        super().setUp()
        self.succeed("partition", BAR, "q.h5")
        self.matrix, facts = self.stored("q.h5")
        self.points, self.middles = facts["coordinates"], facts["mid_edges"]
        self.held = self.points[:, 0] < 0.1
        self.numbers = np.random.default_rng(3).permutation(5000)[:833] + 1
        order = np.random.default_rng(4).permutation(833)
        ends = {tuple(sorted(edge)): node for node, *edge in self.middles}
        with h5py.File(self.path("box.h5")) as file:
            tetrahedra = file["tetrahedra"][:]
        deck = ["*NODE"] + [f"{self.numbers[i]}, {', '.join(repr(float(x)) for x in self.points[i])}" for i in order]
        deck.append("*ELEMENT, TYPE=C3D10")
        for k, corners in enumerate(tetrahedra):
            pairs = ((0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3))
            nodes = [*corners, *(ends[tuple(sorted((corners[a], corners[b])))] for a, b in pairs)]
            deck.append(f"{k + 1}, " + ", ".join(str(self.numbers[i]) for i in nodes))
        self.write("nodes.inp", "\n".join(deck) + "\n")
        self.write("job.inp", "*HEADING\n quadratic tetrahedra\n*INCLUDE, INPUT=nodes.inp\n*STEP\n*END STEP\n")

    def write_job(self, name, keep):
        """The rows `keep` as CalculiX writes them: a .sti file in its order, and the .dof file."""
        rows = np.flatnonzero(keep)
        order = rows[np.lexsort((rows % 3, self.numbers[rows // 3]))]
        self.write(f"{name}.dof", "".join(f"{self.numbers[i // 3]}.{i % 3 + 1}\n" for i in order))
        lower = sp.tril(self.matrix.tocsr()[order][:, order]).tocoo()
        self.write(f"{name}.sti", "".join(f"{i + 1} {j + 1} {v!r}\n" for i, j, v in
                                          zip(lower.row.tolist(), lower.col.tolist(), lower.data.tolist())))

    def test_the_input_file_says_where_the_nodes_of_the_matrix_lie(self):
        self.write_job("job", np.repeat(~self.held, 3))
        blind, modes = self.near_null("job.sti")
        self.assertIn("no coordinates", modes)
        self.succeed("convert", "job.sti", "job.mtx")  # and job.mtx.dof
        self.succeed("partition", "job.sti", "job.h5", "--sort", "global", "--coordinates", "job.inp")
        nodes = int((~self.held).sum())
        inside = int((~self.held[self.middles]).all(1).sum())
        self.assertEqual(self.known("job.h5"), {"placed": nodes, "mid_edges": inside, "near_null_vectors": 0})
        for ranks in (1, 2, 3):
            for matrix, options in (("job.sti", ("--coordinates", "job.inp")), ("job.mtx", ("--coordinates", "job.inp")), ("job.h5", ())):
                found, modes = self.near_null(matrix, *options, ranks=ranks)
                self.assertEqual(modes, "6 rigid-body modes", (matrix, ranks))
                self.assertLess(found, 0.6 * blind, (matrix, ranks))

    def test_a_symmetric_half_holds_some_unknowns_of_a_node(self):
        keep = np.ones((833, 3), bool)
        for axis in range(3):
            keep[:, axis] = self.points[:, axis] > 0.1
        self.write_job("half", keep.ravel())
        blind, modes = self.near_null("half.sti")
        self.assertEqual(modes, "the constant")
        self.succeed("partition", "half.sti", "half.h5", "--coordinates", "job.inp")
        self.assertEqual(self.known("half.h5"), {"placed": 0, "mid_edges": 0, "near_null_vectors": 6})
        for ranks in (1, 2, 3):
            for matrix, options in (("half.sti", ("--coordinates", "job.inp")), ("half.h5", ())):
                found, modes = self.near_null(matrix, *options, ranks=ranks)
                self.assertEqual(modes, "6 given vectors")
                self.assertLess(found, 0.6 * blind, (matrix, ranks))

    def test_a_mesh_that_does_not_fit(self):
        self.write_job("job", np.repeat(~self.held, 3))
        self.write("few.inp", "*NODE\n1, 0, 0, 0\n2, 1, 0, zero\n")
        for ranks in (0, 2):
            self.fail_with(INPUT, "solve", "job.sti", "--preconditioner", "multigrid", "--backend", "host", "--coordinates", "few.inp",
                           says=["few.inp:3", "zero", "(--coordinates)"], ranks=ranks)
        self.write("few.inp", "*NODE\n1, 0, 0, 0\n")
        self.fail_with(INPUT, "partition", "job.sti", "no.h5", "--coordinates", "few.inp", says=["few.inp", "it has no node"])
        self.assertFalse(self.path("no.h5").exists())


class Lists(NodeFiles):
    def test_mid_edge_nodes_of_a_file(self):
        self.succeed("partition", BAR, "q.h5")
        middles = self.stored("q.h5")[1]["mid_edges"]
        np.save(self.path("m.npy"), middles)
        np.savetxt(self.path("m.txt"), middles[::-1][:, [0, 2, 1]], "%d")
        with h5py.File(self.path("m.h5"), "w") as file:
            file["mid_edges"] = middles
        for name in ("m.npy", "m.txt", "m.h5"):
            self.succeed("partition", BAR, "p.h5", "--mid-edge-nodes", name, "--force")
            np.testing.assert_array_equal(self.stored("p.h5")[1]["mid_edges"], middles)
            self.near_null(BAR + ",clamp=0.1", "--mid-edge-nodes", name, ranks=2)

    def test_mistakes(self):
        solve = ("solve", BEAM, "--preconditioner", "multigrid", "--backend", "host")
        for name, text, says in (("far", "5 1 0\n1000 2 3\n", ["far.txt, line 2", "there is no node 1000; they are 0 to 999"]),
                                 ("twice", "5 1 0\n# a comment\n5 2 3\n", ["twice.txt, line 2", "node 5 comes twice"]),
                                 ("chain", "5 1 0\n6 5 3\n", ["chain.txt, line 2", "node 5 is the end of an edge"]),
                                 ("half", "5 1.5 0\n", ["half.txt, line 1", "1.5 is not the number of a node"]),
                                 ("four", "5 1 0 0\n", ["four.txt:1", "it must have 3"])):
            self.write(f"{name}.txt", text)
            for ranks in (0, 2):
                self.fail_with(INPUT, *solve, "--mid-edge-nodes", f"{name}.txt", says=says, ranks=ranks)
            self.fail_with(INPUT, "partition", BEAM, "no.h5", "--mid-edge-nodes", f"{name}.txt", says=says)
        self.fail_with(USAGE, "solve", BEAM, "--preconditioner", "jacobi", "--mid-edge-nodes", "far.txt",
                       says=["mid-edge nodes are of no use", "(--mid-edge-nodes)"])
        self.fail_with(USAGE, *solve, "--mid-edge-nodes", "far.txt", "--output", "far.txt", says="the mid-edge nodes itself")
        np.save(self.path("short.npy"), grid_points()[1:])
        self.fail_with(INPUT, "partition", BEAM, "no.h5", "--coordinates", "short.npy",
                       says=["short.npy", "999 lines", f"{N**3} nodes of 3 unknowns", "(--coordinates)"])
        np.save(self.path("modes.npy"), np.ones((7, 2)))
        self.fail_with(INPUT, "partition", BEAM, "no.h5", "--near-null-space", "file:modes.npy", says=["modes.npy", "7 lines", "3000 rows"])
        self.fail_with(USAGE, "partition", BEAM, "no.h5", "--near-null-space", "rigid", says=["file:NAME", "(--near-null-space)"])
        self.assertFalse(self.path("no.h5").exists())


if __name__ == "__main__":
    unittest.main()
