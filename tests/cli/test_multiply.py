"""Products of real finite-element matrices and others, in files and generated, against SciPy."""

import json
import os
import re
import shutil
import tempfile
import pathlib
import unittest

import numpy as np
import scipy.sparse as sp

from support import (FEM, INPUT, OK, USAGE, CliTest, DATA, PROGRAM, VERIFICATION, assert_product, fem_matrix,
                     read_vector, run, write_binsparse, write_vector)


class FiniteElements(CliTest):
    """Matrices of FreeFEM, from .mtx.gz to y."""

    @classmethod
    def setUpClass(cls):
        cls.matrices = pathlib.Path(tempfile.mkdtemp(prefix="shardmat_cli_"))
        cls.addClassCleanup(shutil.rmtree, cls.matrices, ignore_errors=True)
        for name in FEM:
            for sort in ("none", "local", "global"):
                result = run([PROGRAM, "partition", DATA / f"{name}.mtx.gz", cls.matrices / f"{name}-{sort}.h5", "--parts", 2,
                              "--sort", sort], cls.matrices)
                assert result.code == 0, result

    def multiply(self, name, ranks, type, suffix_in, suffix_out, sort="none"):
        matrix = fem_matrix(name)
        x = np.random.default_rng(ranks).uniform(-1, 1, matrix.shape[1]).astype({"f32": np.float32, "f64": np.float64}[type])
        given = write_vector(self.path("x" + suffix_in), x)
        self.succeed("multiply", self.matrices / f"{name}-{sort}.h5", "--x", given, "--output", "y" + suffix_out, "--type", type,
                     "--iterations", 2, "--verify", ranks=ranks)
        y = read_vector(self.path("y" + suffix_out))
        if suffix_out != ".mtx":
            self.assertEqual(y.dtype, x.dtype)
        value_type = x.dtype
        assert_product(self, y.astype(float), matrix.astype(value_type).astype(float), x.astype(float), type=type,
                       context=f"{name} on {ranks} ranks in {type}")

    def test_product_is_scipys_on_any_ranks_in_both_types_with_vectors_of_every_format(self):
        formats = [".h5", ".npy", ".mtx"]
        for i, name in enumerate(FEM):
            for ranks in (1, 2, 3):
                for k, type in enumerate(("f64", "f32")):
                    suffix_in, suffix_out = formats[(i + ranks) % 3], formats[(ranks + k) % 3]
                    with self.subTest(matrix=name, ranks=ranks, type=type, x=suffix_in, y=suffix_out):
                        self.multiply(name, ranks, type, suffix_in, suffix_out)

    def test_sorted_rows_give_y_in_original_order(self):
        for name in FEM:
            for sort in ("local", "global"):
                with self.subTest(matrix=name, sort=sort):
                    self.multiply(name, 3, "f64", ".npy", ".npy", sort)

    def test_many_right_hand_sides_at_once(self):
        for name in FEM:
            for sort, type, count, suffix, ranks in (("none", "f64", 5, ".npy", 0), ("global", "f64", 3, ".h5", 2),
                                                     ("local", "f32", 4, ".mtx", 3), ("global", "f32", 2, ".npy", 0)):
                with self.subTest(matrix=name, sort=sort, type=type, ranks=ranks):
                    value = {"f32": np.float32, "f64": np.float64}[type]
                    matrix = fem_matrix(name).astype(value).astype(float)
                    x, y0 = (np.random.default_rng(seed).uniform(-1, 1, (rows, count)).astype(value)
                             for seed, rows in ((7, matrix.shape[1]), (8, matrix.shape[0])))
                    given = write_vector(self.path("x" + suffix), x)
                    start = write_vector(self.path("y0.npy"), np.asfortranarray(y0))
                    report = self.json_of("multiply", self.matrices / f"{name}-{sort}.h5", "--rhs", count, "--type", type,
                                          "--x", given, "--y0", start, "--alpha", 2, "--beta", -0.5, "--output", "y" + suffix,
                                          "--iterations", 2, "--verify", ranks=ranks)
                    self.assertEqual(report["operation"]["right_hand_sides"], count)
                    y = read_vector(self.path("y" + suffix))
                    self.assertEqual(y.shape, y0.shape)
                    for j in range(count):
                        assert_product(self, y[:, j].astype(float), matrix, x[:, j].astype(float), alpha=2, beta=-0.5,
                                       y0=y0[:, j].astype(float), type=type, context=f"{name}, column {j}")

    def test_blocks_of_columns_give_the_same_y(self):
        matrix, path = fem_matrix("convection"), self.matrices / "convection-none.h5"
        x = np.random.default_rng(5).uniform(-1, 1, (matrix.shape[1], 12))
        given = write_vector(self.path("x.npy"), x)
        for ranks, block in ((1, 12), (2, 4), (3, 2)):
            with self.subTest(ranks=ranks):
                report = self.json_of("multiply", path, "--rhs", 12, "--column-block", 4 if ranks == 1 else block, "--x", given,
                                      "--output", "y.npy", "--iterations", 2, "--verify", ranks=ranks)
                self.assertEqual(report["exchange"]["column_block"], block)
                y = read_vector(self.path("y.npy"))
                for j in range(12):
                    assert_product(self, y[:, j], matrix, x[:, j], context=f"column {j}")

    def test_a_column_has_the_same_bits_in_products_of_any_number(self):
        matrix, path = fem_matrix("elasticity_bar"), self.matrices / "elasticity_bar-none.h5"
        x = np.random.default_rng(9).uniform(-1, 1, (matrix.shape[1], 5))
        for ranks, exchange in ((1, "auto"), (2, "halo")):
            with self.subTest(ranks=ranks):
                of = {}
                for columns in (5, 1):
                    given = write_vector(self.path("x.npy"), x if columns == 5 else x[:, 3])
                    self.json_of("multiply", path, "--rhs", columns, "--same-bits", "--exchange", exchange, "--x", given,
                                 "--output", "y.npy", ranks=ranks)
                    of[columns] = read_vector(self.path("y.npy"))
                np.testing.assert_array_equal(of[5][:, 3].view(np.int64), of[1].view(np.int64))
        self.fail_with(USAGE, "multiply", path, "--same-bits", "--kernel", "crs_paper_host", says="--same-bits")

    def test_row_block_packing_multiplies_several_columns(self):
        matrix, path = fem_matrix("elasticity_bar"), self.matrices / "elasticity_bar-none.h5"
        x = np.random.default_rng(4).uniform(-1, 1, (matrix.shape[1], 5))
        for kernel, ranks in (("rbp_csr_host", 0), ("rbp_ell_host", 2), ("rbp_ell_r_host", 3), ("rbp_csr_host", 2)):
            with self.subTest(kernel=kernel, ranks=ranks):
                of = {}
                for columns in (5, 1):
                    given = write_vector(self.path("x.npy"), x if columns == 5 else x[:, 3])
                    report = self.json_of("multiply", path, "--rhs", columns, "--kernel", kernel, "--same-bits", "--x", given,
                                          "--output", "y.npy", "--verify", ranks=ranks)
                    self.assertEqual(report["kernel"]["name"], kernel)
                    of[columns] = read_vector(self.path("y.npy"))
                np.testing.assert_array_equal(of[5][:, 3].view(np.int64), of[1].view(np.int64))
                for j in range(5):
                    assert_product(self, of[5][:, j], matrix, x[:, j], context=f"column {j}")

    def test_16_bit_values_are_added_in_32(self):
        def upper_half(values):  # bf16: f32 rounded to its upper 16 bits, ties to even
            bits = np.asarray(values, np.float32).view(np.uint32)
            return ((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000).astype(np.uint32).view(np.float32)
        matrix = fem_matrix("stokes")
        x = np.random.default_rng(3).uniform(-1, 1, (matrix.shape[1], 5))
        for type, rounded in (("f16", lambda v: v.astype(np.float16)), ("bf16", upper_half)):
            with self.subTest(type=type):
                given = write_vector(self.path("x.npy"), rounded(x))
                self.json_of("multiply", self.matrices / "stokes-none.h5", "--rhs", 5, "--type", type, "--x", given,
                             "--output", "y.npy", "--verify")
                y, of_rounded = read_vector(self.path("y.npy")), matrix.copy()
                of_rounded.data = rounded(matrix.data).astype(float)
                self.assertEqual(y.dtype, np.float32)
                for j in range(5):
                    assert_product(self, y[:, j].astype(float), of_rounded, rounded(x[:, j]).astype(float), type="f32",
                                   context=f"column {j}")

    def test_values_beyond_16_bits_are_named(self):
        given = write_vector(self.path("x.npy"), np.full((fem_matrix("stokes").shape[1], 2), 7e4))
        path = self.matrices / "stokes-none.h5"
        self.fail_with(INPUT, "multiply", path, "--rhs", 2, "--type", "f16", "--x", given, says="65504")
        self.succeed("multiply", path, "--rhs", 2, "--type", "bf16", "--x", given, "--verify")
        self.fail_with(USAGE, "multiply", path, "--type", "f16", says="--rhs")

    def test_a_matrix_of_another_shape_is_refused(self):
        path = self.matrices / "stokes-none.h5"
        rows = fem_matrix("stokes").shape[1]
        for suffix in (".npy", ".h5", ".mtx"):
            given = write_vector(self.path("x" + suffix), np.ones((rows, 3)))
            self.fail_with(INPUT, "multiply", path, "--rhs", 4, "--x", given, says="x" + suffix)
            self.fail_with(INPUT, "multiply", path, "--x", given, says="x" + suffix)
        given = write_vector(self.path("short.npy"), np.ones((rows - 1, 4)))
        self.fail_with(INPUT, "multiply", path, "--rhs", 4, "--x", given, says=f"needs {rows}")

    def test_many_right_hand_sides_are_refused_where_they_do_not_go(self):
        path = self.matrices / "stokes-none.h5"
        self.fail_on_every_rank(USAGE, "multiply", path, "--rhs", 4, "--mode", "power", ranks=2, says="--rhs")
        self.fail_with(USAGE, "multiply", path, "--rhs", 4, "--measure", says="--measure")
        self.fail_with(USAGE, "multiply", path, "--rhs", 4, "--verify=sampled", says="sampled")
        self.fail_with(USAGE, "multiply", path, "--rhs", 4, "--kernel", "csr_hots", says="csr_host")
        self.fail_with(USAGE, "multiply", path, "--rhs", 0, says="--rhs")
        self.fail_on_every_rank(USAGE, "multiply", path, "--rhs", 12, "--column-block", 5, ranks=2, says="2, 3, 4, 6 or 12")
        self.fail_with(USAGE, "multiply", path, "--column-block", 2, says="--rhs")
        self.fail_with(USAGE, "multiply", path, "--rhs", 4, "--column-block", 2, "--overlap", says="--overlap")

    def test_stored_partition_is_used_and_others_are_computed(self):
        path = self.matrices / "convection-none.h5"
        origins = [self.json_of("multiply", path, ranks=n)["partition"]["origin"] for n in (2, 3)]
        self.assertNotEqual(*origins)
        self.assertIn("computed", origins[1])


class Products(CliTest):
    def test_alpha_beta_and_y0(self):
        matrix = sp.random(40, 30, density=0.3, format="csr", random_state=4)
        write_binsparse(self.path("a.h5"), matrix)
        random = np.random.default_rng(5)
        x, y0 = random.standard_normal(30), random.standard_normal(40)
        write_vector(self.path("x.h5"), x)
        write_vector(self.path("y0.h5"), y0, "y")
        self.succeed("multiply", "a.h5", "--x", "x.h5", "--y0", "y0.h5", "--alpha", -1.5, "--beta", 0.25, "--output", "y.h5",
                     "--iterations", 3, "--verify", ranks=2)
        assert_product(self, read_vector(self.path("y.h5")), matrix, x, -1.5, 0.25, y0)

    def test_vector_in_a_named_dataset(self):
        matrix = sp.random(10, 10, density=0.5, format="csr", random_state=6)
        write_binsparse(self.path("a.h5"), matrix)
        write_vector(self.path("v.h5"), np.arange(10.0), "loads")
        self.succeed("multiply", "a.h5", "--x", "v.h5:/loads", "--output", "y.npy")
        assert_product(self, read_vector(self.path("y.npy")), matrix, np.arange(10.0))

    def test_results_in_a_named_dataset(self):
        for command, matrix in (("batch", "batch:count=5,dim=3"), ("multiply", "poisson:n=4")):
            self.succeed(command, matrix, "--output", "y.h5", "--iterations", 0, ranks=2)
            for name in ("a.h5:/group/deep/z", "b.h5:z"):
                self.succeed(command, matrix, "--output", name, "--iterations", 0, ranks=2)
                file, dataset = name.split(":")
                np.testing.assert_array_equal(read_vector(self.path(file), dataset), read_vector(self.path("y.h5")))
        self.succeed("multiply", "poisson:n=4", "--x", "a.h5:/group/deep/z", "--output", "y2.h5:/group/deep/z")
        self.assertEqual(self.files(), ["a.h5", "b.h5", "y.h5", "y2.h5"])
        self.fail_with(USAGE, "multiply", "poisson:n=4", "--output", "n.h5:/", says=["n.h5:/", "write FILE.h5:/NAME"])

    def test_generator_and_its_file_give_the_same_y(self):
        self.succeed("generate", "elasticity", "--n", 6, "bar.h5")
        for source in ("bar.h5", "elasticity:n=6"):
            self.succeed("multiply", source, "--output", f"{source[:3]}.npy", "--verify", ranks=3)
        np.testing.assert_array_equal(read_vector(self.path("bar.npy")), read_vector(self.path("ela.npy")))

    def test_same_x_for_a_seed_on_any_number_of_ranks(self):
        for ranks in (1, 3):
            self.succeed("multiply", "poisson:n=6", "--seed", 7, "--output", f"{ranks}.npy", ranks=ranks)
        np.testing.assert_allclose(read_vector(self.path("1.npy")), read_vector(self.path("3.npy")), atol=1e-14)

    def test_ranks_that_own_no_rows_wait_for_the_owners(self):
        command = ("multiply", "elasticity:n=5", "--kernel", "csr_host", "--x", "random", "--backend", "host")
        self.succeed(*command, "--output", "2.npy", ranks=2)
        result = self.succeed(*command, "--output", "3.npy", "--owners", 2, "--json", "-", ranks=3)
        self.assertIn("2 of 3 ranks work; the others wait", result.err)
        self.assertEqual(len(json.loads(result.out)["ranks"]), 2, result)
        self.assertEqual(self.path("2.npy").read_bytes(), self.path("3.npy").read_bytes())
        result = self.call("multiply", "nowhere.mtx", "--owners", 1, ranks=2)
        self.assertEqual((result.code, len(result.messages)), (INPUT, 1), result)

    def test_more_ranks_than_rows(self):
        for rows, cols in ((1, 1), (3, 3), (2, 9), (9, 2)):
            with self.subTest(rows=rows, cols=cols):
                matrix = sp.csr_matrix(np.arange(1.0, 1 + rows * cols).reshape(rows, cols))
                write_binsparse(self.path("tiny.h5"), matrix)
                x = write_vector(self.path("x.npy"), np.arange(1.0, 1 + cols))
                self.succeed("multiply", "tiny.h5", "--x", x, "--output", "y.npy", "--verify", ranks=7)
                np.testing.assert_array_equal(read_vector(self.path("y.npy")), matrix @ np.arange(1.0, 1 + cols))

    def test_zero_iterations_still_give_y(self):
        self.succeed("multiply", "poisson:n=4", "--iterations", 0, "--output", "y.npy", "--verify")
        self.assertEqual(read_vector(self.path("y.npy")).shape, (64,))

    def test_names_with_spaces_and_unicode(self):
        self.succeed("generate", "poisson", "--n", 4, "a matrix ü.h5")
        self.succeed("multiply", "a matrix ü.h5", "--output", "the y.h5", ranks=2)
        self.assertEqual(read_vector(self.path("the y.h5")).shape, (64,))

    def test_vectors_must_be_finite(self):
        values = np.ones(64)
        values[5] = np.nan
        write_vector(self.path("x.npy"), values)
        self.fail_with(INPUT, "multiply", "poisson:n=4", "--x", "x.npy", "--output", "y.npy", ranks=2, says=["x.npy", "entry 5"])

    def test_whole_numbers_are_vectors_and_complex_ones_are_not(self):
        self.succeed("multiply", "poisson27:n=4", "--x", "ones", "--output", "y.npy", ranks=2)
        for name in ("x.npy", "x.h5"):
            write_vector(self.path(name), np.ones(64, dtype=np.int16))
            self.succeed("multiply", "poisson27:n=4", "--x", name, "--output", "z.npy", ranks=2)
            np.testing.assert_array_equal(read_vector(self.path("z.npy")), read_vector(self.path("y.npy")))
            write_vector(self.path(name), np.ones(64) + 1j)
            self.fail_with(INPUT, "multiply", "poisson27:n=4", "--x", name, says=[name, "complex"])

    def test_sums_beyond_the_range_are_said(self):
        write_vector(self.path("x.npy"), np.full(64, 1e200))
        out = self.succeed("multiply", "poisson27:n=4", "--x", "x.npy", "--mode", "dots", "--iterations", 1).out
        self.assertIn("range of f64", out)

    def test_overflow_fails_the_verification_and_writes_nothing(self):
        write_vector(self.path("x.npy"), np.resize([3e38, -3e38], 64))
        self.fail_with(VERIFICATION, "multiply", "poisson27:n=4", "--x", "x.npy", "--type", "f32", "--verify", "--output", "y.npy",
                       ranks=2, says="verification")

    def test_allowed_nonfinite_matrix_is_multiplied_but_not_verified(self):
        self.write("nan.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 nan\n2 2 3\n")
        self.succeed("partition", "nan.mtx", "nan.h5", "--allow-nonfinite")
        self.succeed("multiply", "nan.h5", "--x", "ones", "--output", "y.npy")
        np.testing.assert_array_equal(read_vector(self.path("y.npy")), [np.nan, 3])
        for ranks in (1, 2):  # whose other row is fine
            failed = self.call("multiply", "nan.h5", "--verify", ranks=ranks)
            self.assertEqual(failed.code, VERIFICATION, failed)
            self.assertIn("worst row 0: computed nan, expected nan, not a finite number", failed.out)


class Report(CliTest):
    KEYS = {"matrix", "operation", "partition", "backend", "ranks", "threads_per_rank", "kernel", "exchange", "phases_s",
            "iteration", "local_product", "exchange_alone", "gflops", "bandwidth_bytes_per_s", "copy_bandwidth_bytes_per_s",
            "device_bytes", "host_peak_bytes", "verification"}

    def test_json_on_standard_output_is_nothing_but_json_and_complete(self):
        report = self.json_of("multiply", "elasticity:n=5", "--iterations", 7, "--verify", "--measure", ranks=2)
        self.assertLessEqual(self.KEYS, report.keys())
        self.assertEqual(report["matrix"]["rows"], 375)
        self.assertEqual(report["iteration"]["iterations"], 7)
        self.assertEqual(report["backend"]["name"], "host")
        self.assertEqual([r["rank"] for r in report["ranks"]], [0, 1])
        self.assertTrue(report["verification"]["passed"])
        self.assertEqual(report["verification"]["rows_checked"], 375)
        for why in (report["kernel"]["why"], report["exchange"]["why"]):
            self.assertTrue(why)
        for phase in report["phases_s"].values():
            self.assertLessEqual(phase["min"], phase["max"])
        self.assertGreater(report["gflops"], 0)

    def test_each_rank_s_own_median(self):
        report = self.json_of("multiply", "rmat:scale=10", "--iterations", 20, ranks=3)
        for times in (report["iteration"], report["local_product"], report["exchange_alone"]):
            ranks = times["medians_of_ranks_s"]
            self.assertTrue(0 < ranks["min"] <= ranks["mean"] <= ranks["max"], ranks)
            self.assertLessEqual(ranks["max"], times["median_s"], "nobody is slower than the slowest rank of each time")
        self.assertRegex(self.succeed("multiply", "rmat:scale=10", ranks=2).out, r"local product +\d.*s.* over ranks")

    def test_a_measured_choice_is_remembered(self):
        cache = {"SHARDMAT_CACHE_DIR": str(self.path("cache"))}
        matrix = "elasticity:n=6"
        first = self.json_of("multiply", matrix, "--measure", ranks=2, env=cache)["kernel"]
        self.assertEqual(first["decision"], "measured")
        self.assertIn(first["name"], [measured["kernel"] for measured in first["measurements"]])
        self.assertGreater(first["choosing_products"], 1)
        self.assertEqual(len(list(self.path("cache").rglob("*.json"))), 4, "one for each of a rank's two blocks of rows")

        second = self.json_of("multiply", matrix, "--verify", ranks=2, env=cache)["kernel"]
        self.assertEqual((second["decision"], second["name"], second["policy"]), ("remembered", first["name"], first["policy"]))
        self.assertIn("remembered from", self.succeed("multiply", matrix, ranks=2, env=cache).out)
        for option in ("--no-cache", "--no-measure"):
            self.assertEqual(self.json_of("multiply", matrix, option, ranks=2, env=cache)["kernel"]["decision"], "model")
        self.assertEqual(self.json_of("multiply", matrix, "--type", "f32", ranks=2, env=cache)["kernel"]["decision"], "model")

        for file in self.path("cache").rglob("*.json"):
            file.write_text("{")
        spoiled = self.json_of("multiply", matrix, "--verify", ranks=2, env=cache)["kernel"]
        self.assertEqual(spoiled["decision"], "model")
        self.assertIn("was of no use", spoiled["why"])

    def test_measuring_and_not_measuring_exclude_each_other(self):
        self.fail_with(USAGE, "multiply", "elasticity:n=3", "--measure", "--no-measure", says=["exclude", "(--measure)"])

    def test_symmetric_storage_gives_the_same_y_in_less_memory(self):
        for ranks in (1, 2, 3):
            for columns in (1, 5):
                common = ["elasticity:n=9", "--rhs", columns, "--backend", "host", "--verify"]
                whole = self.json_of("multiply", *common, "--output", "whole.npy", ranks=ranks)
                half = self.json_of("multiply", *common, "--storage", "symmetric", "--output", "half.npy", ranks=ranks)
                self.assertTrue(all(rank["kernel"].startswith("symmetric_host") for rank in half["ranks"]), half["ranks"])
                np.testing.assert_allclose(read_vector(self.path("half.npy")), read_vector(self.path("whole.npy")), atol=1e-12)
                self.assertLess(half["device_bytes"]["max"], whole["device_bytes"]["max"])

    def test_symmetric_storage_names_entries_that_differ(self):
        matrix = sp.random(60, 60, density=0.1, format="csr", random_state=7)
        matrix = (matrix + matrix.T).tocsr()
        write_binsparse(self.path("a.h5"), matrix)
        self.succeed("multiply", "a.h5", "--storage", "symmetric", "--verify", ranks=2)
        row = int(np.argmax(np.diff(matrix.indptr)))
        column = int(next(j for j in matrix.indices[matrix.indptr[row]:matrix.indptr[row + 1]] if j != row))
        matrix[row, column] *= 1 + 1e-9
        write_binsparse(self.path("b.h5"), matrix)
        first, second = min(row, column), max(row, column)
        self.fail_on_every_rank(INPUT, "multiply", "b.h5", "--storage", "symmetric", ranks=2,
                                says=[f"entry ({first}, {second}) is", f"entry ({second}, {first}) is", "--storage"])
        self.fail_with(USAGE, "multiply", "a.h5", "--storage", "symmetric", "--kernel", "csr_host", says="symmetric storage")
        self.fail_with(USAGE, "multiply", "random:n=20,cols=30", "--storage", "symmetric", says="square")

    def test_symmetric_storage_takes_what_is_symmetric_within_rounding(self):
        generator = np.random.default_rng(8)
        matrix = sp.random(200, 200, density=0.05, format="csr", random_state=8)
        matrix = (matrix + matrix.T + sp.diags(generator.uniform(8, 9, 200))).tocsr()
        matrix.data *= 1 + 1e-12 * generator.uniform(-1, 1, matrix.nnz)
        missing = [(i, j) for i, j in ((3, 190), (150, 7), (99, 101)) if matrix[j, i] == 0]
        self.assertGreater(len(missing), 0)
        matrix = matrix.tolil()
        for i, j in missing:
            matrix[i, j] = -1e-11
        write_binsparse(self.path("a.h5"), matrix.tocsr())
        mean = ((matrix + matrix.T) / 2).tocsr()
        x = generator.uniform(-1, 1, 200)
        np.save(self.path("x.npy"), x)
        np.save(self.path("b.npy"), mean @ x)
        half = ["a.h5", "--storage", "symmetric", "--backend", "host"]
        for ranks in (1, 2, 3):
            with self.subTest(ranks=ranks):
                report = self.json_of("multiply", *half, "--sort", "local", "--x", "x.npy", "--verify", "--output", "y.npy", ranks=ranks)
                self.assertTrue(all(rank["kernel"].startswith("symmetric_host") for rank in report["ranks"]))
                self.assertTrue(1e-12 < report["matrix"]["symmetry_difference"] < 3e-12, report["matrix"])
                assert_product(self, read_vector(self.path("y.npy")), mean, x)
                report = self.json_of("solve", *half, "--b", "b.npy", "--rtol", 1e-13, "--output", "solved.npy", ranks=ranks)
                self.assertEqual(report["solver"]["name"], "cg")
                np.testing.assert_allclose(read_vector(self.path("solved.npy")), x, atol=1e-11)
        info = self.json_of("info", "a.h5")["symmetry"]
        self.assertTrue(info["within_rounding"])
        self.assertRegex(self.succeed("info", "a.h5").out, r"symmetry +symmetric within rounding \(largest relative difference ")
        # A small row beside one that is huge does not hide: the smaller of both rows counts.
        matrix[5, 5] = 1e30
        matrix[5, 180] = matrix[180, 5] + 0.01
        write_binsparse(self.path("b.h5"), matrix.tocsr())
        self.fail_with(INPUT, "multiply", "b.h5", *half[1:], says=["entry (5, 180) is", "entry (180, 5) is"])
        self.assertFalse(self.json_of("info", "b.h5")["symmetry"]["within_rounding"])

    def test_json_in_a_file_beside_the_table(self):
        result = self.succeed("multiply", "poisson:n=5", "--json", "report.json", ranks=2)
        self.assertEqual(json.loads(self.path("report.json").read_text())["partition"]["parts"], 2)
        for word in ("Matrix poisson:n=5", "rank 1", "kernel", "exchange", "GFLOP/s", "copy bandwidth"):
            self.assertIn(word, result.out)
        self.assertEqual(self.files(), ["report.json"])

    def test_the_host_is_not_called_a_device(self):
        host = ["--backend", "host", "--iterations", 3]
        for words in (["multiply", "poisson:n=8"], ["batch", "batch:count=3,dim=4"]):
            result = self.succeed(*words, *host, ranks=2)
            self.assertNotIn("device", result.out)
            for share in re.findall(r"= (\d+) % of the copy bandwidth", result.out):
                self.assertLessEqual(int(share), 100)

    def test_a_better_prediction_that_is_not_taken_is_explained(self):
        matrix = sp.random(50, 50, 0.05, random_state=3, format="csr")
        write_binsparse(self.path("small.h5"), matrix)
        report = self.json_of("multiply", "small.h5", "--no-measure", "--backend", "host")
        first = report["kernel"]["predictions"][0]["kernel"]
        self.assertEqual((first, report["kernel"]["name"]), ("packed_host", "csr_host"))
        self.assertIn("packed_host was passed over: its format would take more memory than CSR", report["kernel"]["why"])

    def test_a_kernel_is_named_once_for_all_blocks_of_rows(self):
        report = self.json_of("multiply", "poisson:n=8", "--kernel", "csr_host", "--overlap", "--backend", "host", ranks=2)
        self.assertGreater(report["exchange"]["overlapped"]["max"], 0)
        self.assertEqual(report["exchange"]["why_rows_wait"], "")
        self.assertEqual([rank["kernel"] for rank in report["ranks"]], ["csr_host", "csr_host"])

    def test_the_report_says_why_rows_wait_for_x(self):
        few = "rows that need no x of other ranks hold [0-9to ]+ % of a rank's nonzeros; ranks where they hold less than half wait for x"
        several = "kernels for several right-hand sides multiply all rows at once unless overlap is asked for"
        for words, why in ((["poisson:n=8", "--no-overlap"], "rows wait for x, as asked for"), (["rmat:scale=6"], few),
                           (["poisson:n=8", "--rhs", 4], several),
                           (["poisson:n=8", "--rhs", 4, "--column-block", 2], "blocks of columns overlap instead: .*")):
            with self.subTest(words=words):
                command = ["multiply", *words, "--backend", "host", "--iterations", 0]
                report = self.json_of(*command, ranks=2)
                self.assertRegex(report["exchange"]["why_rows_wait"], f"^{why}$")
                self.assertEqual(report["exchange"]["overlapped"]["max"], 0)
                self.assertRegex(self.succeed(*command, ranks=2).out, f"\n  overlap +no rows: {why}\n")
        alone = self.succeed("multiply", "poisson:n=8", "--backend", "host", "--iterations", 0).out
        self.assertNotIn("overlap", alone)

    def test_peak_memory_leaves_out_the_arrays_that_measure_the_copy_bandwidth(self):
        peak = [self.json_of("multiply", "poisson:n=8", "--backend", "host", "--iterations", n)["host_peak_bytes"]["max"] for n in (0, 3)]
        self.assertLess(peak[1] - peak[0], 2**26)  # one of two arrays


class Lines(CliTest):
    """What the documentation tells a user to type."""

    def test_first_steps(self):
        shutil.copy(DATA / "elasticity_bar.mtx.gz", self.path("bar.mtx.gz"))
        matrix = fem_matrix("elasticity_bar")
        x = np.random.default_rng(8).standard_normal(matrix.shape[0])
        write_vector(self.path("x.h5"), x)
        script = """set -e
            shardmat generate elasticity --n 40 bar.h5
            shardmat partition bar.mtx.gz bar.h5 --parts 2,4,8 --sort local
            shardmat info bar.h5
            mpirun -n 4 shardmat multiply bar.h5 --iterations 100 --verify --json report.json
            mpirun -n 4 shardmat multiply bar.h5 --x x.h5 --output y.h5"""
        path = f"{os.path.dirname(PROGRAM)}:{os.environ['PATH']}"
        result = run(["sh", "-c", script], self.directory, env={"PATH": path})
        self.assertEqual((result.code, result.messages), (0, []), result)
        self.assertTrue(json.loads(self.path("report.json").read_text())["verification"]["passed"])
        assert_product(self, read_vector(self.path("y.h5")), matrix, x)
        self.assertEqual(self.files(), ["bar.h5", "bar.mtx.gz", "report.json", "x.h5", "y.h5"])


class Batch(CliTest):
    def test_matrices_are_multiplied_together(self):
        self.succeed("partition", DATA / "stokes.mtx.gz", "a.h5", "--parts", 2)
        for placement in ("split", "whole"):
            report = self.json_of("multiply", "a.h5", "poisson27:n=5", "a.h5", "--batch", placement, "--verify", ranks=2)
            self.assertEqual([item["matrix"] for item in report["batch"]], ["a.h5", "poisson27:n=5", "a.h5"])
            self.assertTrue(all(item["verification"]["passed"] for item in report["batch"]))
            self.assertEqual(report["placement"]["name"], placement)
            self.assertEqual({item["rank"] for item in report["batch"]}, {-1} if placement == "split" else {0, 1})
            self.assertGreater(report["iteration"]["median_s"], 0)
        self.assertIn("predicted", self.succeed("multiply", "a.h5", "poisson27:n=5", ranks=2).out)

    def test_ranks_with_little_to_load_wait_for_the_others(self):
        self.outlast_the_deadline("multiply", "poisson27:n=50", "poisson27:n=3", "--batch", "whole", "--iterations", 0, slow_bytes=8_000_000)

    def test_what_is_for_one_matrix_is_refused(self):
        self.fail_with(USAGE, "multiply", "poisson27:n=5", "poisson27:n=6", "--output", "y.h5", says="--output")
        self.fail_with(USAGE, "multiply", "poisson27:n=5", "--batch", "half", says="--batch")
        self.fail_with(USAGE, "multiply", "poisson27:n=5", "--batch", "auto", "--type", "f16", says="--rhs")
        self.fail_with(USAGE, "multiply", "poisson27:n=5", "poisson27:n=4", "--kernel", "nope", says="nope")


if __name__ == "__main__":
    unittest.main()
