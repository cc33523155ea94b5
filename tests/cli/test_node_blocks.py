"""Cuts between the nodes of finite-element matrices: --node-block-size, and what the sparsity pattern tells."""

import json
import unittest

import h5py
import numpy as np
import scipy.io
import scipy.sparse as sp

from support import USAGE, CliTest, write_binsparse, write_vector


def grid(*shape):
    """The neighbours of the nodes of a grid, corners included, and the nodes themselves."""
    whole = sp.identity(1, format="csr")
    for n in shape:
        whole = sp.csr_matrix(sp.kron(whole, sp.diags([1, 1, 1], [-1, 0, 1], shape=(n, n))))
        whole.eliminate_zeros()  # kron() stores small dense matrices
    return whole


def elastic(shape, unknowns, seed, kept=1.0):
    """Symmetric positive definite; each block is one of `unknowns`², of which a share `kept` of the entries is stored."""
    rng = np.random.default_rng(seed)
    a = sp.kron(grid(*shape), np.ones((unknowns, unknowns)), format="csr")
    a.data = rng.uniform(-1, 1, a.nnz)
    a = sp.triu(a, 1, format="csr")
    a.data[rng.uniform(size=a.nnz) > kept] = 0
    a.eliminate_zeros()
    a = a + a.T
    stiff = 1 + np.asarray(abs(a).sum(axis=1)).ravel()
    return sp.csr_matrix(a + sp.diags(stiff * 10.0 ** rng.uniform(0, 1, a.shape[0])))


class NodeBlocks(CliTest):
    def solved(self, matrix, ranks, *options):
        """The report of a solve whose solution is right."""
        self.succeed("solve", matrix, "--b", "b.npy", "--output", "x.npy", "--force", "--json", "report.json",
                     "--preconditioner", "block_jacobi", "--penalty-rows", "keep", *options, ranks=ranks)
        x = np.load(self.path("x.npy"))
        self.assertLess(np.linalg.norm(self.a @ x - self.b), 2e-8 * np.linalg.norm(self.b))
        return json.loads(self.path("report.json").read_text())

    def make(self, a):
        self.a, self.b = a, np.random.default_rng(1).standard_normal(a.shape[0])
        scipy.io.mmwrite(self.path("a.mtx"), a.tocoo(), symmetry="general")
        write_binsparse(self.path("plain.h5"), a)
        write_vector(self.path("b.npy"), self.b)

    def starts(self, file, *options):
        """Where the parts of a partitioned file begin, by their number."""
        self.succeed("partition", file, "cut.h5", "--parts", "2,3,5", "--force", *options)
        with h5py.File(self.path("cut.h5")) as made:
            self.stored_size = int(made["shardmat"].attrs["node_block_size"])
            return {parts: made[f"shardmat/partitions/nnz-{parts}/row_starts"][:].tolist() for parts in (2, 3, 5)}

    def test_same_iterations_on_any_number_of_ranks(self):
        for unknowns, shape, kept in ((3, (5, 5, 5), 1.0), (2, (11, 9), 1.0), (3, (5, 5, 5), 0.8), (2, (11, 9), 0.75)):
            self.make(elastic(shape, unknowns, 7, kept))
            plain = self.starts("a.mtx", "--node-block-size", 1)
            self.assertTrue(any(start % unknowns for cuts in plain.values() for start in cuts), "they must split a node")
            for file in ("a.mtx", "plain.h5"):
                cuts = self.starts(file)
                self.assertEqual(self.stored_size, unknowns)
                self.assertFalse(any(start % unknowns for starts in cuts.values() for start in starts), cuts)
            node = unknowns * int(np.diff(self.a.indptr).max())
            for parts, starts in cuts.items():
                heaviest = max(np.diff(self.a.indptr[starts]))
                self.assertLessEqual(heaviest, max(np.diff(self.a.indptr[plain[parts]])) + node)
            iterations = set()
            for file in ("a.mtx", "plain.h5", "cut.h5"):
                for ranks in (0, 2, 3):
                    with self.subTest(unknowns=unknowns, kept=kept, file=file, ranks=ranks):
                        report = self.solved(file, ranks)
                        self.assertEqual(report["solver"]["preconditioner_note"], f"blocks of {unknowns}")
                        self.assertEqual(report["partition"]["node_block_size"], unknowns)
                        self.assertTrue(report["partition"]["nodes_are_whole"])
                        self.assertEqual(report["partition"]["node_block_origin"],
                                         "stored in the file" if file == "cut.h5" else "found in the pattern")
                        iterations.add(report["iterations"])
            self.assertEqual(len(iterations), 1, iterations)

    def test_other_matrices_keep_their_cuts(self):
        rng = np.random.default_rng(3)
        scattered = sp.random(240, 240, density=0.05, random_state=2) + sp.identity(240)
        web = sp.coo_matrix((np.ones(1500), (rng.zipf(1.5, 1500) % 300, rng.integers(0, 300, 1500))), (300, 300))
        for name, a in (("grid", grid(12, 10)), ("cube", grid(6, 6, 6)), ("random", scattered), ("web", web + sp.identity(300)),
                        ("wide", sp.random(240, 120, density=0.1, random_state=4))):
            with self.subTest(name):
                self.make(sp.csr_matrix(a))
                self.assertEqual(self.starts("a.mtx"), self.starts("a.mtx", "--node-block-size", 1))
                self.assertEqual(self.stored_size, 1)

    def test_size_is_given(self):
        self.make(elastic((6, 5, 2), 3, 5))
        for ranks in (0, 2, 3):
            with self.subTest(ranks=ranks):
                for file in ("a.mtx", "plain.h5"):
                    report = self.solved(file, ranks, "--node-block-size", 6)
                    self.assertEqual(report["solver"]["preconditioner_note"], "blocks of 6")
                    self.assertEqual(report["partition"]["node_block_origin"], "given")
                # The size 1 is Jacobi's.
                of_one = self.solved("a.mtx", ranks, "--node-block-size", 1)
                self.assertEqual(of_one["solver"]["preconditioner_note"], "blocks of 1")
                self.succeed("solve", "a.mtx", "--b", "b.npy", "--json", "jacobi.json", "--preconditioner", "jacobi",
                             ranks=ranks)
                jacobi = json.loads(self.path("jacobi.json").read_text())
                self.assertEqual(of_one["iterations"], jacobi["iterations"])
        self.succeed("multiply", "a.mtx", "--node-block-size", 3, "--verify", ranks=2)
        for command in (("solve", "a.mtx"), ("multiply", "a.mtx"), ("multiply", "plain.h5"), ("eigen", "plain.h5")):
            self.fail_on_every_rank(USAGE, *command, "--node-block-size", 7,
                                    says=["180 rows are no whole number of nodes of 7", "--node-block-size"])
        self.fail_with(USAGE, "partition", "a.mtx", "no.h5", "--parts", 2, "--node-block-size", 7,
                       says=["180 rows", "nodes of 7", "--node-block-size"])
        self.assertFalse(self.path("no.h5").exists())
        self.fail_with(USAGE, "solve", "a.mtx", "--preconditioner", "block_jacobi", "--node-block-size", 9, says=["1 to 6"])
        self.fail_with(USAGE, "solve", "a.mtx", "--block-size", 3, says=["did you mean --node-block-size?"])

    def test_orders_keep_nodes(self):
        self.make(elastic((8, 6, 4), 3, 5))
        for order in (("--sort", "global"), ("--reorder", "rcm"), ("--reorder", "graph")):
            for ranks in (0, 3) if "graph" in order else (0,):
                with self.subTest(order=order, ranks=ranks):
                    result = self.call("partition", "a.mtx", "cut.h5", "--parts", "3", "--force", *order, ranks=ranks)
                    if result.code == USAGE and "this build has no" in result.err:
                        continue
                    self.assertEqual(result.code, 0, result)
                    with h5py.File(self.path("cut.h5")) as file:
                        old = np.sort(file["shardmat/permutation"][:].reshape(-1, 3), axis=1)  # rcm turns the order around
                        size = file["shardmat"].attrs["node_block_size"]
                        whole = (old[:, 0] % 3 == 0).all() and (np.diff(old, axis=1) == 1).all()
                    self.assertTrue(whole)
                    self.assertEqual(size, 3)
                    for options in ((), ("--node-block-size", 3)):
                        self.assertEqual(self.solved("cut.h5", 3, *options)["solver"]["preconditioner_note"], "blocks of 3")
        rng = np.random.default_rng(2)
        shuffled = rng.permutation(self.a.shape[0])
        self.make(self.a[shuffled][:, shuffled])
        self.fail_with(USAGE, "partition", "a.mtx", "no.h5", "--parts", 2, "--node-block-size", 3, "--sort", "global",
                       says=["another order", "--node-block-size"])
        self.succeed("partition", "a.mtx", "cut.h5", "--parts", 2, "--force", "--sort", "global")
        self.fail_on_every_rank(USAGE, "solve", "cut.h5", "--node-block-size", 3, says=["another order", "--node-block-size"])

    def test_what_a_file_recorded_stays(self):
        self.make(elastic((6, 5, 2), 3, 5))
        self.starts("a.mtx", "--node-block-size", 6)
        self.succeed("partition", "cut.h5", "again.h5", "--parts", 3)
        with h5py.File(self.path("again.h5")) as again:
            self.assertEqual(again["shardmat"].attrs["node_block_size"], 6)
        self.assertEqual(self.solved("again.h5", 3)["solver"]["preconditioner_note"], "blocks of 6")
        # An older file, whose cuts split nodes.
        self.make(elastic((5, 5, 5), 3, 7))
        starts = self.starts("a.mtx", "--node-block-size", 1)
        self.assertTrue(any(start % 3 for start in starts[3]))
        with h5py.File(self.path("cut.h5"), "r+") as file:
            del file["shardmat"].attrs["node_block_size"]
        report = self.solved("cut.h5", 3)
        self.assertEqual(report["partition"]["origin"], "stored in the file")
        self.assertFalse(report["partition"]["nodes_are_whole"])
        self.assertEqual(report["solver"]["preconditioner_note"],
                         "blocks of 1: nodes have 3 unknowns, and parts begin within nodes")
        report = self.solved("cut.h5", 3, "--node-block-size", 3)
        self.assertEqual(report["partition"]["origin"], "computed when loading")
        self.assertEqual(report["solver"]["preconditioner_note"], "blocks of 3")
        self.make(sp.csr_matrix(grid(9, 9) + 9 * sp.identity(81)))
        self.assertEqual(self.solved("a.mtx", 2)["solver"]["preconditioner_note"],
                         "blocks of 1: the pattern shows no nodes of several unknowns")


if __name__ == "__main__":
    unittest.main()
