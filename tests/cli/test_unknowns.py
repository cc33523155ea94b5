"""Rows keep the nodes and degrees of freedom that Abaqus and CalculiX name, through shard files and conversions. The matrices
are CalculiX's own (tests/data/calculix). TEST_CALCULIX=run makes them anew with the ccx of this machine."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np
import scipy.io
import scipy.sparse as sp

from support import DATA, INPUT, RESOURCES, USAGE, CliTest, file_size_limit, read_binsparse

RUNS_CALCULIX = os.environ.get("TEST_CALCULIX") == "run"
DENSITY = 7.8e-9


def list_of(path):
    """Node and degree of freedom of each line."""
    return np.array([line.split(".") for line in path.read_text().split()], np.int64).reshape(-1, 2)


def in_order(unknowns):
    """By node, then degree of freedom; equal ones as they come."""
    return np.lexsort((unknowns[:, 1], unknowns[:, 0]))


def nodes_of(path):
    """Coordinates of each node of an input file."""
    lines = path.read_text().split("*ELEMENT")[0].split("*NODE")[1].splitlines()[1:]
    return {int(line.split(",")[0]): np.array(line.split(",")[1:], float) for line in lines}


class UnknownsTest(CliTest):
    def matrix_of(self, name):
        self.succeed("convert", name, "found.npz", "--force")
        return sp.load_npz(self.path("found.npz")).toarray()

    def stored(self, name):
        with h5py.File(self.path(name)) as file:
            return file["shardmat/unknowns"][:]


class Calculix(UnknownsTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = DATA / "calculix"
        if RUNS_CALCULIX:
            made = tempfile.mkdtemp(prefix="shardmat_calculix_")
            cls.addClassCleanup(shutil.rmtree, made)
            subprocess.run([cls.folder / "make.sh", made], check=True)
            for file in cls.folder.glob("*.inp"):
                shutil.copy(file, made)
            cls.folder = type(cls.folder)(made)

    def setUp(self):
        super().setUp()
        for file in self.folder.iterdir():
            shutil.copy(file, self.path(file.name))

    def expected(self, name):
        """The matrix of a file, whose rows CalculiX numbers as in the .dof file, and its unknowns; both in our order."""
        unknowns = list_of(self.path(name).with_suffix(".dof"))
        row, column, value = np.loadtxt(self.path(name), unpack=True)
        lower = sp.coo_matrix((value, (row.astype(int) - 1, column.astype(int) - 1)), 2 * (len(unknowns),)).toarray()
        order = in_order(unknowns)
        return (lower + lower.T - np.diag(np.diag(lower)))[np.ix_(order, order)], unknowns[order]

    def test_what_is_read_is_what_calculix_wrote(self):
        for name in ("prism.sti", "prism.mas", "plate.sti", "rod.con", "rod.sph"):
            with self.subTest(name=name):
                matrix, unknowns = self.expected(name)
                np.testing.assert_array_equal(self.matrix_of(name), matrix)
                np.testing.assert_array_equal(list_of(self.path("found.npz.dof")), unknowns)
                info = self.json_of("info", name)
                self.assertEqual(info["rows"], len(unknowns))
                self.assertEqual(info["symmetry"]["equal"], info["symmetry"]["off_diagonal"])
                self.assertEqual((info["unknowns"]["count"], info["unknowns"]["nodes"]),
                                 (len(unknowns), len(set(unknowns[:, 0]))))

    def test_a_body_that_moves_feels_no_force_and_has_its_mass(self):
        """This needs the right node and the right direction for each row."""
        nodes = nodes_of(self.path("prism.inp"))
        stiffness, mass = self.matrix_of("prism.sti"), self.matrix_of("prism.mas")
        unknowns = list_of(self.path("found.npz.dof"))
        place, axis = np.array([nodes[node] for node in unknowns[:, 0]]), np.eye(3)[unknowns[:, 1] - 1]
        for direction in np.eye(3):
            for motion in (axis @ direction, np.einsum("ij,ij->i", np.cross(direction, place), axis)):
                self.assertLess(np.abs(stiffness @ motion).max(), 1e-12 * np.abs(stiffness).max())
            self.assertAlmostEqual((axis @ direction) @ mass @ (axis @ direction) / DENSITY, 1)  # the volume is 1

    def test_nodes_of_a_shell_come_several_times(self):
        text = self.succeed("info", "plate.sti", "--quick").out
        unknowns = list_of(self.path("plate.dof"))
        self.assertGreater(len(unknowns), len(np.unique(unknowns, axis=0)))
        self.assertIn(f"unknowns     {len(unknowns)} of {len(set(unknowns[:, 0]))} nodes, dofs 1-3\n", text)
        self.assertRegex(self.succeed("info", "rod.con", "--quick").out, r"unknowns     7 of 7 nodes, dof 0\n")
        self.succeed("multiply", "plate.sti", "--verify", "--iterations", 0, "--no-measure", ranks=2)

    def test_shard_files_keep_the_original_order(self):
        matrix, unknowns = self.expected("prism.sti")
        for name, options in (("plain.h5", ()), ("sorted.h5", ("--sort", "global")), ("near.h5", ("--reorder", "rcm"))):
            with self.subTest(name=name):
                said = self.succeed("partition", "prism.sti", name, "--parts", 2, *options).out
                self.assertIn(f"{name}:/shardmat/unknowns: node and degree of freedom of each row\n", said)
                np.testing.assert_array_equal(self.stored(name), unknowns)
                self.succeed("verify-file", name)
                self.assertEqual(self.json_of("info", name, "--quick")["unknowns"]["dofs"], [[1, 3]])
                np.testing.assert_array_equal(self.matrix_of(name), matrix)
                np.testing.assert_array_equal(list_of(self.path("found.npz.dof")), unknowns)
        with h5py.File(self.path("sorted.h5")) as file:
            order = file["shardmat/permutation"][:]
            rows = read_binsparse(self.path("sorted.h5"))[1].toarray()
            self.assertFalse((order == np.arange(order.size)).all())
            np.testing.assert_array_equal(rows, matrix[np.ix_(order, order)])
        np.save(self.path("values.npy"), np.arange(1.0, 1 + read_binsparse(self.path("plain.h5"))[1].nnz))
        self.succeed("convert", "sorted.h5", "new.h5", "--values", "values.npy")
        self.succeed("partition", "new.h5", "again.h5", "--parts", 3)
        np.testing.assert_array_equal(self.stored("again.h5"), unknowns)

    def test_ranks_that_order_the_rows_together_keep_it(self):
        _, unknowns = self.expected("plate.sti")
        result = self.call("partition", "plate.sti", "ranks.h5", "--parts", 2, "--reorder", "graph", ranks=2)
        if result.code == USAGE and "PT-Scotch" in result.err:
            self.skipTest("a build without PT-Scotch")
        self.assertEqual(result.code, 0, result)
        np.testing.assert_array_equal(self.stored("ranks.h5"), unknowns)


class Lists(UnknownsTest):
    def setUp(self):
        super().setUp()
        self.write("job.sti", "1 1 4.\n1 2 -1.\n2 2 3.\n")
        self.write("job.dof", "20.1\n9.11\n")  # not sorted

    def test_every_kind_of_file_has_its_list(self):
        self.write("job_STIF1.mtx", "20,1, 20,1, 4.\n20,1, 9,11, -1.\n9,11, 9,11, 3.\n-1,1, -1,1, 5.\n")
        for name in ("o.mtx", "o.npz", "o.petsc", "o.mat", "o.00000", "o.00000.bin"):
            for source, lines in (("job.sti", "9.11\n20.1\n"), ("job_STIF1.mtx", "-1.1\n9.11\n20.1\n")):
                said = self.succeed("convert", source, name).out
                self.assertIn(f"\n{name}.dof: node.dof of each row, {lines.count('.')} lines\n", said)
                self.assertEqual(self.path(f"{name}.dof").read_text(), lines)
        self.assertEqual(self.path("job.dof").read_text(), "20.1\n9.11\n")
        self.assertIn("unknowns     3 of 3 nodes, dofs 1, 11\n", self.succeed("info", "job_STIF1.mtx").out)
        self.assertIn("OUTPUT.dof", self.succeed("convert", "--help").out)

    def test_matrices_without_a_list(self):
        self.write("grid_STIF1.mtx", "1 1 4.\n2 1 -1.\n2 2 3.\n")  # style COORDINATE names no nodes
        said = self.succeed("convert", "grid_STIF1.mtx", "o.npz").out
        self.assertNotIn("dof", said)
        self.assertFalse(self.path("o.npz.dof").exists())
        self.assertNotIn("unknowns", self.json_of("info", "grid_STIF1.mtx"))
        self.succeed("convert", "job.sti", "o.npz")
        self.assertIn("o.npz.dof: not of this matrix", self.succeed("convert", "grid_STIF1.mtx", "o.npz").out)

    def test_what_a_list_does_not_replace(self):
        self.write("o.mtx.dof", "my notes\n")
        self.fail_with(USAGE, "convert", "job.sti", "o.mtx", says=["o.mtx.dof", "something else", "(--force)"])
        self.assertEqual(self.path("o.mtx.dof").read_text(), "my notes\n")
        self.succeed("convert", "job.sti", "o.mtx", "--force")
        self.assertEqual(self.path("o.mtx.dof").read_text(), "9.11\n20.1\n")
        shutil.copy(self.path("job.sti"), self.path("k.mtx.sti"))
        shutil.copy(self.path("job.dof"), self.path("k.mtx.dof"))
        self.fail_with(USAGE, "convert", "k.mtx.sti", "k.mtx", says=["k.mtx.dof is the list of the matrix itself"])
        self.assertEqual(self.path("k.mtx.dof").read_text(), "20.1\n9.11\n")

    def test_a_full_disk_leaves_nothing(self):
        rows = 20000
        self.write("big.sti", "".join(f"{i} {i} 1\n" for i in range(1, rows + 1)))
        self.write("big.dof", "".join(f"{i}.1\n" for i in range(1, rows + 1)))
        for limit, name in ((100_000, "big.mtx.dof"), (200_000, "big.mtx")):  # the list has 148,894 bytes, the matrix 257,788
            self.fail_with(RESOURCES, "convert", "big.sti", "big.mtx", says=f"cannot write {name}:",
                           preexec_fn=file_size_limit(limit))

    def test_damaged_lists(self):
        self.succeed("partition", "job.sti", "good.h5")

        def change(make):
            shutil.copy(self.path("good.h5"), self.path("bad.h5"))
            with h5py.File(self.path("bad.h5"), "a") as file:
                make(file["shardmat"])

        def replace(group, data, checksum=True):
            old = group["unknowns"].attrs["checksum"]
            del group["unknowns"]
            group["unknowns"] = data
            if checksum:
                group["unknowns"].attrs["checksum"] = old

        for make, says in ((lambda g: replace(g, np.zeros((3, 2), np.int64)), "has shape [3, 2] but must have [2, 2]"),
                           (lambda g: replace(g, np.zeros(4, np.int64)), "has shape [4] but must have [2, 2]"),
                           (lambda g: replace(g, np.zeros((2, 2))), "must hold whole numbers"),
                           (lambda g: replace(g, np.zeros((2, 2), np.int64), False), "checksum"),
                           (lambda g: replace(g, np.zeros((2, 2), np.int64)), "the checksum differs"),
                           (lambda g: replace(g, np.full((2, 2), 2**63, np.uint64)), "")):
            change(make)
            for command in (("info", "bad.h5", "--quick"), ("verify-file", "bad.h5"), ("convert", "bad.h5", "o.npz")):
                self.fail_with(INPUT, *command, says=["bad.h5", "/shardmat/unknowns", says])
        change(lambda group: group.__delitem__("unknowns"))  # as files written before
        self.succeed("verify-file", "bad.h5")
        self.assertNotIn("unknowns", self.json_of("info", "bad.h5"))


if __name__ == "__main__":
    if RUNS_CALCULIX and shutil.which("ccx") is None:
        print("skipped: this machine has no ccx (package calculix-ccx)")
        sys.exit(0)
    unittest.main()
