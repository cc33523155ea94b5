"""Matrix files of all formats to shard files; what `info` says about them."""

import gzip
import json
import unittest

import h5py
import numpy as np
import scipy.io
import scipy.sparse as sp

from support import (FEM, INPUT, PROGRAM, RESOURCES, USAGE, CliTest, DATA, assert_product, fem_matrix, read_binsparse,
                     read_vector, run, write_binsparse, write_vector)


def best_bottleneck(lengths, parts):
    """The smallest possible largest part of a contiguous split, by bisection."""
    low, high = int(max(lengths, default=0)), int(sum(lengths))
    while low < high:
        limit, used, load = (low + high) // 2, 1, 0
        for length in map(int, lengths):
            if load + length > limit:
                used, load = used + 1, 0
            load += length
        low, high = (low, limit) if used <= parts else (limit + 1, high)
    return low


class Partition(CliTest):
    def assert_same(self, name, matrix):
        found = read_binsparse(self.path(name))[1]
        self.assertEqual(found.shape, matrix.shape)
        self.assertEqual((found != matrix).nnz, 0)

    def test_finite_element_matrices_arrive_unchanged(self):
        for name in FEM:
            with self.subTest(matrix=name):
                self.succeed("partition", DATA / f"{name}.mtx.gz", "o.h5", "--parts", "2,4,8")
                self.assert_same("o.h5", fem_matrix(name))
                self.succeed("verify-file", "o.h5")

    def test_text_and_gzip_give_the_same(self):
        self.write("stokes.mtx", gzip.decompress((DATA / "stokes.mtx.gz").read_bytes()))
        self.succeed("partition", "stokes.mtx", "o.h5")
        self.assert_same("o.h5", fem_matrix("stokes"))

    def test_symmetries_and_duplicates_are_expanded_as_scipy_does(self):
        matrix = sp.random(30, 30, density=0.1, random_state=1)
        for symmetry, whole in (("symmetric", matrix + matrix.T), ("skew-symmetric", matrix - matrix.T)):
            scipy.io.mmwrite(str(self.path("m.mtx")), whole, symmetry=symmetry, precision=17)
            self.succeed("partition", "m.mtx", "o.h5")
            self.assert_same("o.h5", sp.csr_matrix(whole))
        self.write("d.mtx", "%%MatrixMarket matrix coordinate integer general\r\n%\r\n\r\n2 3 3\r\n1 3 2\r\n2 1 5\r\n1 3 4\r\n")
        self.succeed("partition", "d.mtx", "o.h5")
        self.assert_same("o.h5", sp.csr_matrix([[0, 0, 6], [5, 0, 0]]))

    def test_npz_of_scipy(self):
        for format in ("csr", "csc", "coo"):
            matrix = sp.random(20, 30, density=0.2, format=format, random_state=2)
            sp.save_npz(self.path("m.npz"), matrix)
            result = self.call("partition", "m.npz", "o.h5")
            if "libzip" in result.err:
                self.skipTest("built without libzip")
            self.assertEqual(result.code, 0, result)
            self.assert_same("o.h5", sp.csr_matrix(matrix))

    def test_shard_file_again_with_other_parts_and_order(self):
        self.succeed("partition", DATA / "stokes.mtx.gz", "a.h5", "--parts", 2)
        self.succeed("partition", "a.h5", "b.h5", "--parts", "3,5", "--method", "rows")
        self.assert_same("b.h5", fem_matrix("stokes"))
        with h5py.File(self.path("b.h5"), "r") as file:
            self.assertEqual(sorted(file["shardmat/partitions"]), ["rows-3", "rows-5"])
        self.succeed("partition", "a.h5", "c.h5", "--sort", "global")
        self.succeed("verify-file", "c.h5")

    def test_reordering_brings_neighbours_together(self):
        matrix = fem_matrix("elasticity_bar")
        shuffle = np.random.default_rng(5).permutation(matrix.shape[0])
        shuffled = matrix[shuffle][:, shuffle].tocsr()
        scipy.io.mmwrite(str(self.path("shuffled.mtx")), shuffled, precision=17)
        self.succeed("partition", "shuffled.mtx", "none.h5", "--parts", "2,4")
        for reorder, title in (("rcm", "reverse Cuthill-McKee"), ("graph", "by parts of the graph")):
            with self.subTest(reorder=reorder):
                result = self.call("partition", "shuffled.mtx", reorder + ".h5", "--parts", "2,4", "--reorder", reorder)
                if "no METIS" in result.err:
                    self.skipTest("built without METIS")
                self.assertEqual(result.code, 0, result)
                none, info = (json.loads(self.succeed("info", name + ".h5", "--json").out) for name in ("none", reorder))
                self.assertEqual((none["order"], info["order"]), ("source", reorder))
                for before, after in zip(none["partitions"], info["partitions"]):
                    self.assertLess(3 * after["halo_total"], before["halo_total"])
                    self.assertLess(after["imbalance"], 1.05)
                self.succeed("verify-file", reorder + ".h5")
                self.assertIn(title, self.succeed("info", reorder + ".h5").out)
                x = np.random.default_rng(6).uniform(-1, 1, matrix.shape[1])
                report = self.json_of("multiply", reorder + ".h5", "--x", write_vector(self.path("x.npy"), x), "--output",
                                      f"{reorder}.npy", "--verify", ranks=3)
                self.assertIn(title, report["partition"]["sort"])
                assert_product(self, read_vector(self.path(f"{reorder}.npy")), shuffled, x)

    def order_on_ranks(self, matrix, ranks, parts):
        """a.h5, and the same ordered by several ranks in o.h5, which is returned, as is the permutation."""
        write_binsparse(self.path("a.h5"), matrix)
        result = self.call("partition", "a.h5", "o.h5", "--parts", parts, "--reorder", "graph", ranks=ranks)
        if "no PT-Scotch" in result.err:
            self.assertEqual((result.code, result.messages), (USAGE, result.messages[:1]), result)
            self.assertIn("libptscotch-dev", result.err)
            self.skipTest("built without PT-Scotch, and says so")
        self.assertEqual(result.code, 0, result)
        self.succeed("verify-file", "o.h5")
        with h5py.File(self.path("o.h5"), "r") as file:
            permutation = file["shardmat/permutation"][()]
        self.assertEqual(sorted(permutation), list(range(matrix.shape[0])))
        self.assert_same("o.h5", sp.csr_matrix(matrix)[permutation][:, permutation])
        return permutation

    def test_several_ranks_order_as_one_does(self):
        matrix = fem_matrix("elasticity_bar")
        shuffle = np.random.default_rng(5).permutation(matrix.shape[0])
        shuffled = matrix[shuffle][:, shuffle].tocsr()
        self.order_on_ranks(shuffled, 3, "2,4")
        self.succeed("partition", "a.h5", "none.h5", "--parts", "2,4")
        none, info = (json.loads(self.succeed("info", name, "--json").out) for name in ("none.h5", "o.h5"))
        self.assertEqual(info["order"], "graph")
        for before, after in zip(none["partitions"], info["partitions"]):
            self.assertLess(3 * after["halo_total"], before["halo_total"])
            self.assertLess(after["imbalance"], 1.05)
        x = np.random.default_rng(6).uniform(-1, 1, matrix.shape[1])
        self.succeed("multiply", "o.h5", "--x", write_vector(self.path("x.npy"), x), "--output", "y.npy", "--verify", ranks=2)
        assert_product(self, read_vector(self.path("y.npy")), shuffled, x)

    def test_several_ranks_order_any_pattern(self):
        arrow = sp.lil_matrix((200, 200))
        arrow[0, :], arrow[:, 3] = 1, 2
        for name, matrix in (("unsymmetric", sp.random(400, 400, density=0.02, random_state=1)), ("arrow", arrow),
                             ("empty rows", sp.csr_matrix((50, 50))), ("not connected", sp.eye(300)),
                             ("fewer rows than ranks", sp.csr_matrix([[0, 1], [0, 2]])), ("no rows", sp.csr_matrix((0, 0)))):
            for ranks, parts in ((2, 5), (3, 64)):
                with self.subTest(matrix=name, ranks=ranks):
                    self.order_on_ranks(matrix, ranks, parts)

    def test_several_ranks_order_what_is_ordered_or_generated(self):
        self.order_on_ranks(fem_matrix("convection"), 2, 4)
        self.succeed("partition", "a.h5", "sorted.h5", "--sort", "global")
        self.succeed("partition", "sorted.h5", "again.h5", "--parts", 4, "--reorder", "graph", ranks=2)
        with h5py.File(self.path("again.h5"), "r") as file:
            permutation = file["shardmat/permutation"][()]
        self.assert_same("again.h5", fem_matrix("convection")[permutation][:, permutation])
        self.succeed("partition", "poisson:n=8", "p.h5", "--parts", 4, "--reorder", "graph", ranks=3)
        self.succeed("verify-file", "p.h5")
        self.succeed("partition", "p.h5", "p.h5", "--parts", 2, "--reorder", "graph", ranks=3)  # in its own place
        self.succeed("verify-file", "p.h5")

    def test_what_several_ranks_refuse(self):
        graph = ("--parts", 2, "--reorder", "graph")
        self.fail_on_every_rank(USAGE, "partition", "poisson:n=4", "o.h5", "--reorder", "graph", says="--parts")
        self.fail_on_every_rank(USAGE, "partition", "poisson:n=4", "o.h5", *graph, "--sort", "global", says="one of them")
        self.fail_on_every_rank(USAGE, "partition", "poisson:n=4", "o.h5", "--parts", 2, "--reorder", "rcm", says="without mpirun")
        self.fail_on_every_rank(INPUT, "partition", DATA / "stokes.mtx.gz", "o.h5", *graph, says="shardmat partition")
        self.fail_on_every_rank(INPUT, "partition", "none.h5", "o.h5", *graph, says="no such file")
        write_binsparse(self.path("wide.h5"), sp.csr_matrix((1, 2)))
        self.fail_on_every_rank(USAGE, "partition", "wide.h5", "o.h5", *graph, says="square")
        write_binsparse(self.path("nan.h5"), sp.csr_matrix([[1.0, 2.0], [float("nan"), 3.0]]))
        self.fail_on_every_rank(INPUT, "partition", "nan.h5", "o.h5", *graph, ranks=2, says="nan")

    def test_full_disk_under_several_ranks(self):
        self.order_on_ranks(sp.eye(10), 2, 2)
        before = self.files()
        limited = ["mpirun", "-n", 2, "sh", "-c", 'ulimit -f 32768; exec "$@"', "sh", PROGRAM]  # 16 MB; mpirun itself needs more
        result = run([*limited, "partition", "poisson:n=50", "big.h5", "--parts", 1, "--reorder", "graph"], self.directory)
        self.assertEqual((result.code, len(result.messages)), (RESOURCES, 1), result)
        self.assertIn("cannot write", result.messages[0])
        self.assertEqual(self.files(), before)

    def test_orders_that_do_not_go(self):
        self.fail_with(USAGE, "partition", DATA / "stokes.mtx.gz", "o.h5", "--reorder", "rcm", "--sort", "global", says="one of them")
        self.write("wide.mtx", "%%MatrixMarket matrix coordinate pattern general\n1 2 1\n1 1\n")
        for reorder in ("rcm", "graph"):
            self.fail_with(USAGE, "partition", "wide.mtx", "o.h5", "--parts", 2, "--reorder", reorder, says="square")
        self.fail_with(USAGE, "partition", DATA / "stokes.mtx.gz", "o.h5", "--reorder", "graph", says="--parts")
        self.assertFalse(self.path("o.h5").exists())

    def test_no_contiguous_split_is_better(self):
        self.succeed("partition", DATA / "convection.mtx.gz", "o.h5", "--parts", "2,3,7,50")
        lengths = np.diff(fem_matrix("convection").indptr)
        for stored in json.loads(self.succeed("info", "o.h5", "--json").out)["partitions"]:
            self.assertEqual(stored["nnz_max"], best_bottleneck(lengths, stored["parts"]))

    def test_halo_figures_are_what_scipy_counts(self):
        self.succeed("partition", DATA / "stokes.mtx.gz", "o.h5", "--parts", 3)
        (stored,) = json.loads(self.succeed("info", "o.h5", "--json").out)["partitions"]
        matrix, starts, halo = fem_matrix("stokes"), stored["row_starts"], []
        for begin, end in zip(starts, starts[1:]):
            columns = np.unique(matrix[begin:end].indices)
            halo.append(int(np.count_nonzero((columns < begin) | (columns >= end))))
        self.assertEqual((stored["halo_max"], stored["halo_total"]), (max(halo), sum(halo)))
        self.assertEqual(stored["allgather_max"], 2 * max(np.diff(starts)))  # parts padded to the largest

    def test_more_parts_than_rows(self):
        self.write("one.mtx", "%%MatrixMarket matrix coordinate pattern general\n1 1 1\n1 1\n")
        self.succeed("partition", "one.mtx", "o.h5", "--parts", "1,7,1000000", limit=30)
        self.succeed("verify-file", "o.h5")

    def test_info_tells_the_shape_and_every_partition(self):
        self.succeed("partition", DATA / "stokes.mtx.gz", "o.h5", "--parts", "2,4")
        text = self.succeed("info", "o.h5").out
        for word in ("783 × 783", "56,641 nonzeros", "imbalance", "halo", "stokes.mtx.gz"):
            self.assertIn(word, text)
        data = json.loads(self.succeed("info", "o.h5", "--json").out)
        self.assertEqual((data["rows"], data["cols"], data["nnz"]), (783, 783, 56641))
        self.assertEqual([p["parts"] for p in data["partitions"]], [2, 4])


if __name__ == "__main__":
    unittest.main()
