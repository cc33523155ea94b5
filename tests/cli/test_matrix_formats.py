"""Matrices and vectors of other programs: every command takes them, and what is written comes back bit for bit."""

import unittest

import h5py
import numpy as np
import scipy.io
import scipy.sparse as sp

from support import DATA, INPUT, USAGE, CliTest, assert_product, fem_matrix, read_binsparse, write_harwell_boeing


class Files(CliTest):
    def expect(self, name, matrix):
        self.succeed("convert", name, "back.h5", "--force")
        found = read_binsparse(self.path("back.h5"))[1]
        self.assertEqual(found.shape, matrix.shape)
        np.testing.assert_array_equal(found.indptr, matrix.indptr)
        np.testing.assert_array_equal(found.indices, matrix.indices)
        np.testing.assert_array_equal(found.data.view(np.int64), matrix.data.view(np.int64))


def petsc_numbers(*numbers):
    return np.array(numbers, ">i4").tobytes()


class Petsc(Files):
    def test_every_command(self):
        matrix = fem_matrix("convection")
        matrix.data[5] = 0  # an explicit zero stays
        sp.save_npz(self.path("a.npz"), matrix)
        self.succeed("convert", "a.npz", "a.petsc")
        self.succeed("convert", "a.npz", "a.petsc")  # replaces its own kind
        self.expect("a.petsc", matrix)
        x = np.random.default_rng(1).uniform(-1, 1, matrix.shape[1])
        vector = petsc_numbers(1211214, x.size) + x.astype(">f8").tobytes()
        self.write("both.petsc", self.path("a.petsc").read_bytes() + vector)
        self.succeed("convert", "a.npz", "a.h5")
        np.save(self.path("x.npy"), x)
        for ranks in (1, 3):
            report = self.json_of("multiply", "both.petsc", "--x", "both.petsc", "--output", "y.petsc", "--iterations", 0,
                                  "--verify", "--no-measure", ranks=ranks)
            self.assertEqual(report["matrix"]["access"], "each rank, its own rows")
            y = self.path("y.petsc").read_bytes()
            self.assertEqual(y[:8], petsc_numbers(1211214, x.size))
            assert_product(self, np.frombuffer(y[8:], ">f8").astype(float), matrix, x)
            self.succeed("multiply", "a.h5", "--x", "x.npy", "--output", "y.npy", "--iterations", 0, "--no-measure", ranks=ranks)
            self.assertEqual(np.load(self.path("y.npy")).astype(">f8").tobytes(), y[8:])  # the bits from the shard file
        self.succeed("partition", "both.petsc:0", "b.h5", "--parts", 2)
        self.assertEqual(self.json_of("info", "a.petsc")["nnz"], matrix.nnz)

    def test_solve_from_one_file(self):
        matrix = fem_matrix("elasticity_bar")
        matrix = sp.csr_matrix(matrix + 1e3 * sp.eye(matrix.shape[0]))
        sp.save_npz(self.path("a.npz"), matrix)
        self.succeed("convert", "a.npz", "a.petsc")
        b = np.linspace(-1, 1, matrix.shape[0])
        with self.path("a.petsc").open("ab") as file:
            file.write(petsc_numbers(1211214, b.size) + b.astype(">f8").tobytes())
        self.succeed("solve", "a.petsc", "--b", "a.petsc:1", "--output", "x.txt", "--rtol", "1e-10", ranks=2)
        x = np.loadtxt(self.path("x.txt"))
        self.assertLess(np.linalg.norm(matrix @ x - b), 1e-8 * np.linalg.norm(b))

    def test_info_lists_objects(self):
        file = DATA / "petsc" / "objects.petsc"
        text = self.succeed("info", file, "--quick").out
        for line in (f"{file}:0  sparse matrix, 7 × 5, 16 nonzeros", f"{file}:3  vector of 7 entries"):
            self.assertIn(line, text)
        self.fail_with(INPUT, "info", file, "--quick", "--json", "-", says=["several objects of the kind matrix", f"{file}:0"])
        self.fail_with(INPUT, "multiply", file, says=["several objects", ":2 is a sparse matrix, 3 × 3"], ranks=2)
        objects = self.json_of("info", f"{file}:0", "--quick")["objects"]
        self.assertEqual([o["name"] for o in objects], ["0", "1", "2", "3"])
        self.assertEqual(self.json_of("info", f"{file}:2", "--quick")["rows"], 3)
        self.write("x.petsc", petsc_numbers(1211214, 1) + b"\0" * 8)
        self.assertIn("x.petsc:0  vector of 1 entries", self.succeed("info", "x.petsc").out)

    def test_mistakes(self):
        file = DATA / "petsc" / "objects.petsc"
        self.fail_with(INPUT, "info", f"{file}:1", says=["object 1 is no matrix", ":2 is a sparse matrix"])
        self.fail_with(INPUT, "info", "none.petsc:1", says=["none.petsc", "no such file"])
        self.fail_with(USAGE, "convert", file, "o.npz", "--input-format", "petcs", says=["did you mean 'petsc'?"])
        self.write("cut.petsc", file.read_bytes()[:200])
        self.fail_on_every_rank(INPUT, "multiply", "cut.petsc", says=["cut.petsc", "object 0 at byte 0", "truncated"])
        self.fail_with(INPUT, "convert", "cut.petsc", "o.npz", says="truncated")


class Matlab(Files):
    def test_every_command(self):
        matrix = fem_matrix("convection")
        matrix.data[5] = 0
        sp.save_npz(self.path("a.npz"), matrix)
        self.succeed("convert", "a.npz", "a.mat")
        self.succeed("convert", "a.npz", "a.mat")
        self.expect("a.mat", matrix)
        self.expect("a.mat:A", matrix)
        found = scipy.io.loadmat(self.path("a.mat"))["A"]
        self.assertEqual((found != matrix).nnz, 0)
        self.assertEqual(found.nnz, matrix.nnz)
        report = self.json_of("multiply", "a.mat:A", "--verify", "--iterations", 0, "--no-measure", ranks=2)
        self.assertIn("stored by columns and transposed", report["matrix"]["access"])
        self.assertTrue(report["verification"]["passed"])
        self.assertEqual(self.json_of("info", "a.mat")["objects"][0]["name"], "A")

    def test_vectors(self):
        matrix = fem_matrix("convection")
        sp.save_npz(self.path("a.npz"), matrix)
        x = np.random.default_rng(2).uniform(-1, 1, (matrix.shape[1], 3))
        np.save(self.path("x.npy"), x)
        options = ("--iterations", 0, "--no-measure")
        for _ in range(2):  # replaces its own kind
            self.succeed("multiply", "a.npz", "--x", "x.npy", "--rhs", 3, "--output", "y.mat", *options)
        y = scipy.io.loadmat(self.path("y.mat"))["y"]
        for column in range(3):
            assert_product(self, y[:, column], matrix, x[:, column])
        self.succeed("multiply", "a.npz", "--x", "y.mat", "--rhs", 3, "--output", "2.mat", *options, ranks=2)
        again = scipy.io.loadmat(self.path("2.mat"))["x"]  # 2 is no name of a variable
        assert_product(self, again[:, 2], matrix, y[:, 2])
        self.succeed("convert", "a.npz", "a.mat")
        self.fail_with(USAGE, "multiply", "a.npz", "--output", "a.mat", *options, says=["a.mat", "(--force)"])
        self.fail_with(INPUT, "multiply", "a.npz", "--x", "none.mat", *options, says="none.mat")

    def test_several_in_a_file(self):
        file = DATA / "mat" / "v73.mat"
        self.assertIn(f"{file}:/model/M  sparse matrix, 2 × 2", self.succeed("info", f"{file}:K", "--quick").out)
        self.assertIn(f"{file}:/K  sparse matrix, 3 × 4", self.succeed("info", file).out)
        self.fail_with(INPUT, "convert", file, "o.npz", says=["3 sparse matrices; name one"])
        self.succeed("multiply", f"{file}:/model/M", "--x", f"{file}:row", "--output", "y.txt", ranks=2)
        np.testing.assert_array_equal(np.loadtxt(self.path("y.txt")), [8, 15])


class FemText(Files):
    def test_harwell_boeing_of_scipy(self):
        matrix = fem_matrix("convection")
        scipy.io.hb_write(str(self.path("a.rua")), matrix.tocsc())
        expected = sp.csr_matrix(scipy.io.hb_read(str(self.path("a.rua"))))
        expected.sort_indices()
        self.expect("a.rua", expected)
        report = self.json_of("multiply", "a.rua", "--verify", "--iterations", 0, "--no-measure", ranks=2)
        self.assertIn("stored by columns", report["matrix"]["access"])

    def test_abaqus_and_calculix(self):
        self.write("job_STIF1.mtx", "1,1, 1,1, 4.\n2,1, 1,1, -1.\n2,1, 2,1, 3.\n")
        self.expect("job_STIF1.mtx", sp.csr_matrix([[4.0, -1], [-1, 3]]))
        self.write("job.sti", "1 1 4.\n1 2 -1.\n2 2 3.\n")
        self.write("job.dof", "1.1\n2.1\n")
        self.succeed("solve", "job.sti", "--output", "x.txt", ranks=2)
        np.testing.assert_allclose(np.loadtxt(self.path("x.txt")), [4 / 11, 5 / 11], rtol=1e-4)


class HarwellBoeing(Files):
    def test_right_hand_sides(self):
        matrix = sp.csc_matrix(fem_matrix("elasticity_bar") + 1e3 * sp.eye(975))
        x = np.linspace(-1, 1, 975)
        write_harwell_boeing(self.path("a.rua"), matrix, matrix @ x, x)
        self.succeed("solve", "a.rua", "--b", "a.rua:rhs", "--rtol", "1e-10", "--output", "x.npy", ranks=2)
        np.testing.assert_allclose(np.load(self.path("x.npy")), x, atol=1e-7)
        self.succeed("multiply", "a.rua", "--x", "a.rua:solution", "--output", "b.npy")
        np.testing.assert_allclose(np.load(self.path("b.npy")), matrix @ x, rtol=1e-9, atol=1e-6)
        said = self.succeed("info", "a.rua", "--quick").out
        self.assertIn("a.rua:rhs  vector, 975 × 1", said)
        self.assertIn("a.rua:solution  vector, 975 × 1", said)
        self.fail_on_every_rank(INPUT, "solve", "a.rua", "--b", "a.rua:guess", says=["no vector guess", "rhs or solution"])


class Triplets(Files):
    def test_the_line_to_type(self):
        self.write("a.ijv", "1 1 4\n2 1 -1\n2 2 4\n3 3 1\n")
        self.fail_with(INPUT, "info", "a.ijv", says=["(--input-format triplets --base 1)"])
        self.fail_with(USAGE, "info", "a.ijv", "--input-format", "triplets", says=["begin with 0 or 1", "(--base)"])
        self.fail_with(USAGE, "info", "a.ijv", "--base", "1", says=["only for triplets"])
        self.fail_with(INPUT, "info", "a.ijv", "--input-format", "triplets", "--base", "1", "--triangle", "upper",
                       says=["a.ijv:2", "(--triangle)"])
        options = ("--input-format", "triplets", "--base", "1", "--triangle", "lower")
        self.succeed("convert", "a.ijv", "a.npz", *options)
        np.testing.assert_array_equal(sp.load_npz(self.path("a.npz")).toarray(), [[4, -1, 0], [-1, 4, 0], [0, 0, 1]])
        self.succeed("multiply", "a.ijv", *options, "--verify", ranks=2)
        for ranks in (0, 2):
            taken = self.call("multiply", "a.ijv", "--input-format", "triplets", "--base", "0", ranks=ranks)
            self.assertEqual(taken.messages, ["shardmat: warning: a.ijv: there is no row 0 and no column 0. Do its indices begin with 1? "
                                              "Then name the base 1 (--base)"], taken)
        self.write("zero.ijv", "1 1 4\n0 1 2\n")
        self.fail_with(INPUT, "convert", "zero.ijv", "o.npz", *options, says=["zero.ijv:2", "begin with 1", "(--base)"])


class Matlab5(Files):
    def test_files_of_scipy(self):
        matrix = sp.csr_matrix(fem_matrix("elasticity_bar") + 1e3 * sp.eye(975))
        b = np.linspace(-1, 1, 975)
        for packed in (False, True):
            scipy.io.savemat(self.path("a.mat"), {"K": matrix, "b": b[:, None]}, do_compression=packed)
            self.expect("a.mat", matrix)
        self.succeed("solve", "a.mat:K", "--b", "a.mat:b", "--rtol", "1e-10", "--output", "x.npy", ranks=2)
        self.assertLess(np.linalg.norm(matrix @ np.load(self.path("x.npy")) - b), 1e-8 * np.linalg.norm(b))
        self.assertIn("a.mat:b  dense matrix, 975 × 1", self.succeed("info", "a.mat", "--quick").out)


class Hypre(Files):
    def test_every_command(self):
        matrix = fem_matrix("convection")
        matrix.data[5] = 0
        sp.save_npz(self.path("a.npz"), matrix)
        for name in ("t.00000", "b.00000.bin"):
            self.succeed("convert", "a.npz", name)
            self.succeed("convert", "a.npz", name)
            self.expect(name[0], matrix)
        report = self.json_of("multiply", "t", "--verify", "--output", "y.00000", "--iterations", 0, "--no-measure", ranks=3)
        self.assertTrue(report["verification"]["passed"])
        self.assertEqual(self.json_of("info", "b", "--quick")["nnz"], matrix.nnz)

    def test_a_file_for_each_rank(self):
        matrix = fem_matrix("convection")
        sp.save_npz(self.path("a.npz"), matrix)
        said = self.succeed("convert", "a.npz", "a.00000", "--files", 3).out
        self.assertIn("a.00000 to a.00002: 1,938 × 1,938", said)
        self.succeed("multiply", "a", "--output", "y.00000.bin", "--files", 2, "--x", "ones", ranks=2)
        self.assertEqual(self.files(), ["a.00000", "a.00001", "a.00002", "a.npz", "y.00000.bin", "y.00001.bin"])
        y = np.concatenate([np.fromfile(self.path(f"y.0000{rank}.bin"))[8:] for rank in range(2)])
        np.testing.assert_allclose(y, matrix @ np.ones(1938), atol=1e-12)
        self.succeed("solve", "a", "--b", "y", "--solver", "gmres", "--output", "x.00000", "--files", 4)
        self.succeed("solve", "a", "--b", "y", "--solver", "gmres", "--output", "x.00000", "--files", 4)
        x = np.concatenate([np.loadtxt(self.path(f"x.0000{rank}"), skiprows=1)[:, 1] for rank in range(4)])
        np.testing.assert_allclose(x, np.ones(1938), atol=1e-3)
        for command in (("convert", "a", "b.mtx"), ("solve", "a", "--output", "b.npy"), ("convert", "a", "b.h5")):
            self.fail_with(USAGE, *command, "--files", 2, says=["only hypre's format", "(--files)"])
        self.fail_with(USAGE, "convert", "a", "b.00000", "--files", 0, says=["--files"])
        self.fail_with(USAGE, "convert", "a", "b.00000", "--files", 1939, says=["1938 or fewer files (--files)"])
        self.fail_with(USAGE, "multiply", "a", "--files", 2, says=["--output"])
        self.fail_with(USAGE, "multiply", "a", "--output", "b.00000", "--files", 1939, says=["1938 rows"])
        self.fail_with(USAGE, "convert", "a", "x.00000", "--files", 4, says=["x.00000", "something else than an IJ matrix", "(--force)"])
        self.fail_with(USAGE, "convert", "a.npz", "a.00000", "--force", says=["a.00001", "a.00002", "remove them first"])

    def test_files_of_three_ranks(self):
        folder = DATA / "hypre"
        self.succeed("solve", folder / "IJ.A", "--b", folder / "IJ.b", "--solver", "gmres", "--output", "x.00000.bin", ranks=2)
        self.succeed("convert", folder / "IJ.A", "a.npz")
        x = np.fromfile(self.path("x.00000.bin"))[8:]
        np.testing.assert_allclose(sp.load_npz(self.path("a.npz")) @ x, 1 + 0.5 * np.arange(8), atol=1e-4)
        self.fail_on_every_rank(INPUT, "multiply", folder / "IJ.b", says="it is a file of a vector")
        for rank, text in enumerate(("0 1 0 2\n0 0 1\n1 1 1\n", "2 2 0 2\n2 2 1\n2 x 1\n", "3 3 0 2\n3 y 1\n")):
            self.write(f"bad.0000{rank}", text)
        self.fail_on_every_rank(INPUT, "multiply", "bad", says=["bad.00001:3", "column"])


    def test_entries_that_come_twice(self):
        self.write("a.00000", "0 0 0 1\n0 0 5.0\n0 1 1.5\n")
        self.write("a.00001", "1 1 0 1\n1 1 2.0\n1 1 7.0\n")
        self.fail_with(INPUT, "convert", "a", "o.npz", says=["row 1, column 1", "hypre would keep", "(--sum-duplicates)"])
        self.fail_on_every_rank(INPUT, "multiply", "a", says=["row 1, column 1", "(--sum-duplicates)"])
        self.succeed("convert", "a", "o.npz", "--sum-duplicates")
        np.testing.assert_array_equal(sp.load_npz(self.path("o.npz")).toarray(), [[5, 1.5], [0, 9]])
        self.write("x.txt", "1\n2\n")
        self.succeed("multiply", "a", "--sum-duplicates", "--x", "x.txt", "--output", "y.txt", ranks=2)
        np.testing.assert_array_equal(np.loadtxt(self.path("y.txt")), [8, 18])


class RolesOfVectors(Files):
    """Of several arrays the one named as the option is taken; others are refused with their names."""

    def test_every_option(self):
        self.write("A.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 2 2\n")
        c, two = np.array([[90.0], [70]]), np.array([[3.0], [5]])
        product = ("multiply", "A.mtx", "--backend", "host", "--output", "y.npy", "--force")
        for name, options, y in (("x", product + ("--x",), [3, 10]),
                                 ("y0", product + ("--x", "ones", "--beta", 1, "--y0"), [4, 7]),
                                 ("y", product + ("--x", "ones", "--beta", 1, "--y0"), [4, 7]),
                                 ("b", ("solve", "A.mtx", "--solver", "gmres", "--output", "y.npy", "--force", "--b"), [3, 2.5]),
                                 ("x0", ("solve", "A.mtx", "--b", "two.txt", "--solver", "gmres", "--output", "y.npy", "--force",
                                         "--initial-guess"), [3, 2.5])):
            np.savetxt(self.path("two.txt"), two)
            scipy.io.savemat(self.path("v.mat"), {"c": c, name: two})
            scipy.io.savemat(self.path("w.mat"), {"c": c, "d": two})
            self.succeed(*options, "v.mat", ranks=2)
            np.testing.assert_allclose(np.load(self.path("y.npy")), y, rtol=1e-5)
            self.fail_with(INPUT, *options, "w.mat", says=["w.mat: it has several arrays", "w.mat:c", "d is a dense matrix"])
        two = petsc_numbers(1211214, 2) + np.array([1.0, 2]).astype(">f8").tobytes()
        self.write("v.petsc", two + two)
        self.fail_with(INPUT, *product, "--x", "v.petsc", says=["several objects", "v.petsc:0", ":1 is a vector of 2 entries"])
        self.succeed(*product, "--x", "v.petsc:1")
        with h5py.File(self.path("v.h5"), "w") as file:
            file["c"], file["y"] = c[:, 0], [3.0, 5]
        self.succeed(*product, "--x", "ones", "--beta", 1, "--y0", "v.h5")
        np.testing.assert_allclose(np.load(self.path("y.npy")), [4, 7])
        self.fail_with(INPUT, *product, "--x", "v.h5", says="no dataset /x")


class RankHdf5(Files):
    def test_files_of_ranks(self):
        matrix = fem_matrix("convection")
        starts = [0, 700, 700, 1938]
        for rank in range(3):
            rows = matrix[starts[rank]:starts[rank + 1]]
            with h5py.File(self.path(f"A.{rank:05d}.h5"), "w") as file:
                file["A/ia"], file["A/ja"], file["A/a"] = rows.indptr, rows.indices, rows.data
        map = ("--map", "rowptr=/A/ia,columns=/A/ja,values=/A/a")
        self.succeed("convert", "A.%05d.h5", "a.npz", *map)
        self.expect("a.npz", matrix)
        self.succeed("multiply", "A.%05d.h5", *map, "--verify", ranks=2)
        self.fail_on_every_rank(INPUT, "multiply", "A.%05d.h5", says=["A.00000.h5", "as rowptr=/A/ia", "(--map)"])

    def test_groups_of_ranks(self):
        with h5py.File(self.path("g.h5"), "w") as file:
            for rank, (row, col, value) in enumerate(((0, 1, 2.0), (0, 1, 3.0), (1, 0, 4.0))):
                group = file.create_group(f"rank_{rank:05d}")
                group["rows"], group["columns"], group["values"] = [row], [col], [value]
        self.fail_with(INPUT, "convert", "g.h5", "o.npz", says=["rank_00001", "rank_00000", "(--sum-duplicates)"])
        self.succeed("convert", "g.h5", "o.npz", "--sum-duplicates")
        np.testing.assert_array_equal(sp.load_npz(self.path("o.npz")).toarray(), [[0, 5], [4, 0]])


if __name__ == "__main__":
    unittest.main()
