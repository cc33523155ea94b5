"""h5py and SciPy alone open a shard file and find the matrix; files of h5py are read; damage is found."""

import json
import os
import re
import shutil
import sys
import unittest

import h5py
import numpy as np
import scipy.io
import scipy.sparse as sp

from support import INPUT, ROOT, USAGE, CliTest, assert_product, read_binsparse, read_vector, write_binsparse, write_vector


class ShardFile(CliTest):
    def test_h5py_and_scipy_read_what_is_written(self):
        self.succeed("generate", "poisson", "--n", 6, "out.h5")
        descriptor, matrix, arrays = read_binsparse(self.path("out.h5"))
        self.assertEqual((descriptor["version"], descriptor["format"]), ("0.1", "CSR"))
        self.assertEqual(matrix.shape, (216, 216))
        self.assertEqual(descriptor["number_of_stored_values"], matrix.nnz)
        self.assertEqual(matrix.nnz, (3 * 6 - 2) ** 3)
        for name, array in arrays.items():
            self.assertEqual(descriptor["data_types"][name], array.dtype.name)
        self.assertEqual(arrays["pointers_to_1"].dtype, np.int64)
        matrix.check_format(full_check=True)
        self.assertTrue(matrix.has_canonical_format)
        self.assertLessEqual(abs(matrix - matrix.T).max(), 1e-12 * abs(matrix).max())

    def test_global_sort_is_undone_by_the_permutation(self):
        self.succeed("generate", "poisson", "--n", 6, "plain.h5")
        self.succeed("partition", "plain.h5", "sorted.h5", "--parts", "2,3", "--sort", "global")
        original = read_binsparse(self.path("plain.h5"))[1]
        matrix = read_binsparse(self.path("sorted.h5"))[1]
        with h5py.File(self.path("sorted.h5"), "r") as file:
            order = file["shardmat/permutation"][()]
            self.assertEqual(list(file["shardmat/partitions"]), ["nnz-2", "nnz-3"])
            self.assertEqual(file["shardmat/partitions/nnz-3/row_starts"].shape, (4,))
        self.assertEqual((matrix != original[order][:, order]).nnz, 0)
        self.assertTrue(np.all(np.diff(np.diff(matrix.indptr)) <= 0))

    def test_files_of_h5py_are_partitioned(self):
        matrix = sp.random(50, 70, density=0.1, format="csr", random_state=1)
        for index_type, value_type in ((np.int64, np.float64), (np.uint64, np.float32), (np.int32, np.float64)):
            with self.subTest(index_type=index_type.__name__, value_type=value_type.__name__):
                write_binsparse(self.path("foreign.h5"), matrix, index_type, value_type)
                self.succeed("partition", "foreign.h5", "ours.h5", "--parts", 3)
                found = read_binsparse(self.path("ours.h5"))[1]
                self.assertEqual((found != matrix.astype(value_type).astype(np.float64)).nnz, 0)

    def test_files_of_h5py_are_multiplied_as_they_are(self):
        matrix = sp.random(60, 40, density=0.2, format="csr", random_state=2)
        write_binsparse(self.path("foreign.h5"), matrix)
        x = np.random.default_rng(3).standard_normal(40)
        write_vector(self.path("x.npy"), x)
        self.succeed("multiply", "foreign.h5", "--x", "x.npy", "--output", "y.npy", "--verify", ranks=2)
        assert_product(self, read_vector(self.path("y.npy")), matrix, x)

    def test_a_matrix_without_entries_is_multiplied(self):
        write_binsparse(self.path("empty.h5"), sp.csr_matrix((3, 5)))
        self.succeed("multiply", "empty.h5", "--output", "y.npy", "--verify", ranks=2)
        np.testing.assert_array_equal(read_vector(self.path("y.npy")), np.zeros(3))


def page_python():
    """The two blocks of Python in partition/shard-file.md: reading a shard file, writing a plain one."""
    return re.findall(r"(?ms)^```python\n(.*?)^```", (ROOT / "partition" / "shard-file.md").read_text())


class Page(CliTest):
    """Its lines of Python do what it says."""

    def run_block(self, number, **names):
        here = os.getcwd()
        os.chdir(self.directory)
        self.addCleanup(os.chdir, here)
        names |= {"h5py": h5py, "json": json, "numpy": np, "scipy": sys.modules["scipy"]}
        exec(page_python()[number], names)
        return names["A"]

    def test_permuted_files_are_read(self):
        square = sp.random(40, 40, density=0.1, format="csr", random_state=4) + sp.identity(40, format="csr")
        wide = sp.random(30, 50, density=0.1, format="csr", random_state=5)
        for matrix, options in ((square, ()), (square, ("--sort", "global")), (square, ("--reorder", "rcm")),
                                (wide, ("--sort", "global"))):
            write_binsparse(self.path("a.h5"), matrix)
            self.succeed("partition", "a.h5", "near.h5", "--parts", 2, *options)
            found = self.run_block(0)
            self.assertEqual((found != matrix).nnz, 0)
            self.assertEqual(found.shape, matrix.shape)

    def test_plain_files_are_written(self):
        for matrix in (sp.random(20, 30, density=0.2, format="coo", random_state=6), sp.identity(7, dtype=np.float32)):
            self.run_block(1, A=matrix)
            self.succeed("verify-file", "mine.h5")
            self.succeed("partition", "mine.h5", "near.h5", "--parts", 3)
            x = np.random.default_rng(3).standard_normal(matrix.shape[1])
            write_vector(self.path("x.npy"), x)
            for name in ("mine.h5", "near.h5"):
                self.succeed("multiply", name, "--x", "x.npy", "--output", "y.npy", "--verify", ranks=2)
                assert_product(self, read_vector(self.path("y.npy")), sp.csr_matrix(matrix).astype(float), x)


class NewValues(CliTest):
    """convert --values: another matrix with the same nonzeros, in the same order of rows, with the same partitions."""

    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(7)
        square = sp.random(60, 60, density=0.1, format="csr", random_state=7) + sp.identity(60, format="csr")
        wide = sp.random(30, 50, density=0.1, format="csr", random_state=8)
        for name, matrix in (("square", square), ("wide", wide)):
            matrix.sort_indices()
            write_binsparse(self.path(f"{name}.h5"), matrix)
        self.square, self.wide = square, wide
        self.new = rng.standard_normal(square.nnz)

    def other(self, matrix, values):
        return sp.csr_matrix((values, matrix.indices, matrix.indptr), shape=matrix.shape)

    def expect(self, name, matrix, like):
        """The file has these values and everything else from the file `like`."""
        self.succeed("verify-file", name)
        with h5py.File(self.path(name), "r") as new, h5py.File(self.path(like), "r") as old:
            for dataset in ("pointers_to_1", "indices_1", "shardmat/block_rows", "shardmat/permutation"):
                self.assertEqual(dataset in new, dataset in old)
                if dataset in new:
                    np.testing.assert_array_equal(new[dataset][()], old[dataset][()])
            for group in old["shardmat/partitions"]:
                before, after = (file["shardmat/partitions"][group] for file in (old, new))
                np.testing.assert_array_equal(after["row_starts"][()], before["row_starts"][()])
                for key in set(before.attrs) - {"fingerprint"}:
                    self.assertEqual(after.attrs[key], before.attrs[key])
            for key in ("order", "sort_local", "allow_nonfinite"):
                self.assertEqual(new["shardmat"].attrs.get(key), old["shardmat"].attrs.get(key))
            self.assertNotEqual(new["shardmat"].attrs["fingerprint"], old["shardmat"].attrs["fingerprint"])
            self.assertIn("--values", new["shardmat"].attrs["how"].decode())
        self.succeed("convert", name, "back.npz")
        found = sp.load_npz(self.path("back.npz"))
        np.testing.assert_array_equal(found.indptr, matrix.indptr)
        np.testing.assert_array_equal(found.indices, matrix.indices)
        np.testing.assert_array_equal(found.data, matrix.data)

    def test_the_order_is_that_of_the_original_matrix(self):
        for name, matrix, options in (("square", self.square, ()), ("square", self.square, ("--sort", "local")),
                                      ("square", self.square, ("--sort", "global")),
                                      ("square", self.square, ("--reorder", "rcm")),
                                      ("square", self.square, ("--method", "rows")),
                                      ("wide", self.wide, ("--sort", "global"))):
            with self.subTest(name=name, options=options):
                self.succeed("partition", f"{name}.h5", "a.h5", "--parts", "2,3", *options)
                values = self.new[: matrix.nnz]
                np.save(self.path("v.npy"), values)
                self.succeed("convert", "a.h5", "b.h5", "--values", "v.npy")
                self.expect("b.h5", self.other(matrix, values), "a.h5")

    def test_values_from_every_kind_of_file(self):
        self.succeed("partition", "square.h5", "a.h5", "--parts", 2, "--sort", "global")
        changed = self.other(self.square, self.new)
        write_vector(self.path("v.mtx"), self.new)
        write_vector(self.path("v.h5"), self.new, "loads")
        write_vector(self.path("w.h5"), self.new, "values")
        sp.save_npz(self.path("m.npz"), changed)
        scipy.io.mmwrite(str(self.path("m.mtx")), changed, precision=17)
        write_binsparse(self.path("m.h5"), changed)
        self.succeed("partition", "m.h5", "rcm.h5", "--parts", 2, "--reorder", "rcm")
        for values in ("v.mtx", "v.h5:/loads", "w.h5", "m.npz", "m.mtx", "m.h5", "rcm.h5", "rcm.h5:/values"):
            with self.subTest(values=values):
                self.succeed("convert", "a.h5", "b.h5", "--values", values)
                self.expect("b.h5", changed, "a.h5")

    def test_values_changed_on_purpose_get_new_checksums(self):
        self.succeed("partition", "square.h5", "a.h5", "--parts", 2, "--reorder", "rcm")
        shutil.copy(self.path("a.h5"), self.path("old.h5"))
        with h5py.File(self.path("a.h5"), "r+") as file:
            file["values"][...] *= 2
        command = "shardmat convert a.h5 NEW.h5 --values a.h5:/values"
        self.fail_with(INPUT, "multiply", "a.h5", says=["/values", "damaged", "changed on purpose", command])
        self.succeed(*command.replace("NEW", "new").split()[1:])
        self.expect("new.h5", self.square * 2, "old.h5")
        self.fail_with(INPUT, "convert", "old.h5", "b.h5", "--values", "a.h5", says=["a.h5: dataset /values", "checksum"])
        self.succeed("convert", "a.h5", "a.h5", "--values", "a.h5:/values")
        self.expect("a.h5", self.square * 2, "old.h5")
        with h5py.File(self.path("a.h5"), "r+") as file:
            file["values"][3], file["indices_1"][0] = np.nan, 59
        self.fail_with(INPUT, "convert", "a.h5", "b.h5", "--values", "a.h5:/values", says=["a.h5: dataset /indices_1", "checksum"])
        self.fail_with(INPUT, "convert", "old.h5", "b.h5", "--values", "a.h5:/values", says=["a.h5: dataset /indices_1"])

    def test_mistakes(self):
        self.succeed("partition", "square.h5", "a.h5", "--parts", 2, "--sort", "global")

        def refused(values, *says, code=INPUT, input="a.h5", output="b.h5"):
            self.fail_with(code, "convert", input, output, "--values", values, says=says)
        np.save(self.path("short.npy"), self.new[1:])
        refused("short.npy", "short.npy", f"{self.square.nnz - 1} entries", f"{self.square.nnz} nonzeros")
        bad = self.new.copy()
        bad[17] = np.nan
        np.save(self.path("nan.npy"), bad)
        refused("nan.npy", "nan.npy", "nonzero 17 is nan", "--allow-nonfinite")
        self.succeed("convert", "a.h5", "b.h5", "--values", "nan.npy", "--allow-nonfinite")
        self.path("b.h5").unlink()
        moved = self.square.tolil()
        moved[5, :] = np.roll(moved[5, :].toarray(), 1)
        sp.save_npz(self.path("moved.npz"), moved.tocsr())
        refused("moved.npz", "moved.npz", "row 5", "patterns must be the same")
        refused("wide.h5", "wide.h5", "30 × 50", "60 × 60")
        refused("none.npy", "none.npy", "no such file")
        refused("none.h5", "none.h5", "no such file")
        refused("short.npy", ".h5", code=USAGE, output="b.mtx")
        refused("short.npy", ".h5", code=USAGE, input="poisson:n=3")
        refused("", "--values", code=USAGE)


class VerifyFile(CliTest):
    def setUp(self):
        super().setUp()
        self.succeed("generate", "elasticity", "--n", 4, "good.h5", "--parts", "2,3")
        shutil.copy(self.path("good.h5"), self.path("bad.h5"))

    def damage(self, dataset, index, value):
        with h5py.File(self.path("bad.h5"), "r+") as file:
            file[dataset][index] = value

    def test_a_whole_file_passes(self):
        self.assertIn("all right", self.succeed("verify-file", "good.h5").out)

    def test_a_changed_value_is_found(self):
        self.damage("values", 1000, 1.5)
        self.fail_with(INPUT, "verify-file", "bad.h5", says=["bad.h5", "checksum", "made by", "generate elasticity"])

    def test_a_changed_value_gets_no_further(self):
        self.damage("values", 1000, 1.5)
        for command in (["info", "bad.h5"], ["partition", "bad.h5", "o.h5"], ["convert", "bad.h5", "o.mtx"],
                        ["convert", "bad.h5", "o.npz"], ["multiply", "bad.h5", "--output", "y.npy"]):
            self.fail_with(INPUT, *command, says=["bad.h5", "/values", "checksum"])
        self.fail_on_every_rank(INPUT, "multiply", "bad.h5", "--output", "y.npy", says=["bad.h5", "/values", "checksum"])

    def test_a_changed_permutation_gets_no_further(self):
        self.succeed("partition", "good.h5", "bad.h5", "--sort", "global")
        with h5py.File(self.path("bad.h5"), "r") as file:
            swapped = file["shardmat/permutation"][:2][::-1]
        self.damage("shardmat/permutation", slice(0, 2), swapped)
        self.fail_with(INPUT, "convert", "bad.h5", "o.mtx", says=["bad.h5", "/shardmat/permutation", "checksum"])
        self.fail_on_every_rank(INPUT, "multiply", "bad.h5", "--output", "y.npy", says=["bad.h5", "/shardmat/permutation"])

    def test_permutations_without_checksums_of_blocks_are_read(self):
        self.succeed("partition", "good.h5", "bad.h5", "--sort", "global")
        with h5py.File(self.path("bad.h5"), "r+") as file:
            del file["shardmat/permutation_checksums"]
        self.succeed("verify-file", "bad.h5")
        for name in ("good", "bad"):
            self.succeed("multiply", f"{name}.h5", "--x", "ones", "--output", f"{name}.npy", ranks=2)
        np.testing.assert_allclose(read_vector(self.path("bad.npy")), read_vector(self.path("good.npy")), rtol=0, atol=1e-9)

    def test_a_column_outside_is_found(self):
        self.damage("indices_1", 5, 1 << 20)
        self.fail_with(INPUT, "verify-file", "bad.h5", says="bad.h5")

    def test_a_changed_row_pointer_is_found(self):
        self.damage("pointers_to_1", 7, 0)
        self.fail_with(INPUT, "verify-file", "bad.h5", says="bad.h5")
        with h5py.File(self.path("bad.h5"), "r+") as file:
            pointers = file["pointers_to_1"]
            pointers[7] = (pointers[6] + pointers[8]) // 2 + 1
        for command in ("verify-file", "info"):
            self.fail_with(INPUT, command, "bad.h5", *(["--quick"] if command == "info" else []), says=["/pointers_to_1", "checksum"])

    def test_a_changed_partition_table_is_found(self):
        self.damage("shardmat/partitions/nnz-2/row_starts", 1, 10**6)
        self.fail_with(INPUT, "verify-file", "bad.h5", says=["bad.h5", "nnz-2"])

    def test_changed_figures_of_a_partition_are_found(self):
        for name in ("halo_max", "nnz_max", "imbalance", "boundary_nnz_max"):
            shutil.copy(self.path("good.h5"), self.path("bad.h5"))
            with h5py.File(self.path("bad.h5"), "r+") as file:
                file["shardmat/partitions/nnz-2"].attrs[name] *= 3
            self.fail_with(INPUT, "verify-file", "bad.h5", says=["bad.h5", name, "nnz-2", "the matrix gives"])

    def test_a_truncated_file_is_found(self):
        data = self.path("good.h5").read_bytes()
        for size in (0, 4, 100, len(data) // 2, len(data) * 9 // 10):
            with self.subTest(size=size):
                self.write("bad.h5", data[:size])
                self.fail_with(INPUT, "verify-file", "bad.h5", says="bad.h5")
        self.write("bad.h5", data[:-1000])  # of the description behind the HDF5 file, which is not needed
        self.succeed("verify-file", "bad.h5")

    def test_the_partition_table_of_another_matrix_is_refused(self):
        self.succeed("generate", "poisson", "--n", 5, "other.h5", "--parts", 2)
        with h5py.File(self.path("other.h5"), "r") as other, h5py.File(self.path("bad.h5"), "r+") as bad:
            del bad["shardmat/partitions/nnz-2"]
            other.copy("shardmat/partitions/nnz-2", bad["shardmat/partitions"])
        self.fail_with(INPUT, "verify-file", "bad.h5", says=["bad.h5", "nnz-2"])
        self.fail_on_every_rank(INPUT, "multiply", "bad.h5", ranks=2, says=["bad.h5", "partition"])


if __name__ == "__main__":
    unittest.main()
