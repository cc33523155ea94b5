"""h5py and SciPy alone open a shard file and find the matrix; files of h5py are read; damage is found."""

import shutil
import unittest

import h5py
import numpy as np
import scipy.sparse as sp

from support import INPUT, CliTest, assert_product, read_binsparse, read_vector, write_binsparse, write_vector


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
        for size in (0, 4, 100, len(data) // 2, len(data) - 1000):
            with self.subTest(size=size):
                self.write("bad.h5", data[:size])
                self.fail_with(INPUT, "verify-file", "bad.h5", says="bad.h5")

    def test_the_partition_table_of_another_matrix_is_refused(self):
        self.succeed("generate", "poisson", "--n", 5, "other.h5", "--parts", 2)
        with h5py.File(self.path("other.h5"), "r") as other, h5py.File(self.path("bad.h5"), "r+") as bad:
            del bad["shardmat/partitions/nnz-2"]
            other.copy("shardmat/partitions/nnz-2", bad["shardmat/partitions"])
        self.fail_with(INPUT, "verify-file", "bad.h5", says=["bad.h5", "nnz-2"])
        self.fail_on_every_rank(INPUT, "multiply", "bad.h5", ranks=2, says=["bad.h5", "partition"])


if __name__ == "__main__":
    unittest.main()
