"""What is in files: damage and contents that do not fit are refused with one line, and nothing is left."""

import unittest

import h5py
import numpy as np
import scipy.io
import scipy.sparse as sp

from support import INPUT, USAGE, CliTest, DATA, write_binsparse, write_vector

HEADER = "%%MatrixMarket matrix coordinate real general\n"


class Content(CliTest):
    def refuse(self, name, content, *says, code=INPUT):
        self.write(name, content)
        self.fail_with(code, "partition", name, "o.h5", says=[name, *says])

    def test_garbage(self):
        noise = np.random.default_rng(1).bytes(5000)
        self.refuse("noise.mtx", noise, "%%MatrixMarket")
        self.refuse("noise.mtx.gz", noise)
        self.refuse("noise.npz", noise)
        self.write("noise.h5", noise)
        self.fail_with(INPUT, "partition", "noise.h5", "o.h5", says="noise.h5")
        self.fail_on_every_rank(INPUT, "multiply", "noise.h5", says="noise.h5")

    def test_empty_files(self):
        for name in ("e.mtx", "e.mtx.gz", "e.npz", "e.h5"):
            self.refuse(name, b"", "" if name == "e.npz" or name == "e.h5" else f"{name}: the file is empty")

    def test_truncated_text(self):
        self.refuse("cut.mtx", HEADER + "3 3 3\n1 1 1.0\n2 2", "cut.mtx:2", "truncated")

    def test_truncated_gzip(self):
        data = (DATA / "stokes.mtx.gz").read_bytes()
        self.refuse("cut.mtx.gz", data[: len(data) // 2], "truncated")

    def test_damaged_gzip(self):
        data = bytearray((DATA / "stokes.mtx.gz").read_bytes())
        data[len(data) // 2] ^= 0xFF
        self.refuse("bad.mtx.gz", bytes(data))

    def test_line_count_that_lies(self):
        self.refuse("few.mtx", HEADER + "2 2 3\n1 1 1\n2 2 2\n", "few.mtx:2", "promises 3")
        self.refuse("many.mtx", HEADER + "2 2 1\n1 1 1\n2 2 2\n", "many.mtx:2", "promises 1")

    def test_index_out_of_range_names_the_line(self):
        self.refuse("out.mtx", HEADER + "% comment\n2 2 2\n1 1 1\n3 1 2\n", "out.mtx:5", "3")
        self.refuse("zero.mtx", HEADER + "2 2 1\n0 1 1\n", "zero.mtx:3")

    def test_nonfinite_values_need_permission(self):
        for value in ("nan", "inf", "-inf"):
            self.refuse("nan.mtx", HEADER + f"2 2 2\n1 1 1\n2 2 {value}\n", "nan.mtx:4", "not finite (--allow-nonfinite)")
        self.succeed("partition", "nan.mtx", "o.h5", "--allow-nonfinite")

    def test_complex_and_array_are_refused_by_name(self):
        self.refuse("c.mtx", "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n", "complex")
        self.refuse("a.mtx", "%%MatrixMarket matrix array real general\n1 1\n1\n", "array")

    def test_hdf5_without_a_matrix(self):
        write_vector(self.path("x.h5"), np.ones(3))
        self.fail_with(INPUT, "info", "x.h5", says=["x.h5", "binsparse"])

    def kinds(self):
        """One file of each kind."""
        self.succeed("generate", "poisson", "--n", 3, "matrix.h5")
        self.succeed("batch", "molecules:count=3", "--save", "batch.h5", "--iterations", 0)
        with h5py.File(self.path("mesh.h5"), "w") as file:
            file["points"], file["tetrahedra"] = np.eye(4, 3), np.arange(4)[None]
        with h5py.File(self.path("vectors.h5"), "w") as file:
            file["x"], file["loads"] = np.ones(27), np.ones(27)
        np.savez(self.path("graphs.npz"), graph_ptr=[0, 1], indptr=[0, 0], indices=np.zeros(0, int))
        sp.save_npz(self.path("matrix.npz"), sp.identity(3, format="csr"))
        self.succeed("convert", "matrix.h5", "matrix.mtx")

    def test_files_of_another_kind_are_told_what_reads_them(self):
        self.kinds()
        for command in (["multiply"], ["info"], ["verify-file"], ["partition", "o.h5"], ["convert", "o.mtx"]):
            def refused(name, *says):
                self.fail_with(INPUT, command[0], name, *command[1:], says=[name, *says])
            refused("batch.h5", "a batch of small matrices, not one matrix", "shardmat batch batch.h5")
            refused("mesh.h5", "a mesh of tetrahedra, not a matrix", "shardmat generate elasticity --mesh mesh.h5")
            refused("vectors.h5", 'an HDF5 file with "/loads" and "/x" and no matrix', "'binsparse'", "partition/shard-file.md")
            if command[0] != "verify-file":
                refused("graphs.npz", "a batch of graphs, not one matrix", "shardmat batch graphs.npz")
        self.fail_with(INPUT, "batch", "matrix.h5", says=["a matrix in a shard file, not a batch", "shardmat multiply matrix.h5"])
        self.fail_with(INPUT, "batch", "mesh.h5", says=["a mesh of tetrahedra, not a batch", "--mesh mesh.h5"])
        self.fail_with(INPUT, "batch", "vectors.h5", says=['"/loads" and "/x" and no batch', "--save"])
        for name in ("matrix.mtx", "matrix.npz"):
            self.fail_with(INPUT, "batch", name, says=[name, "one matrix, not a batch", f"shardmat multiply {name}"])
        self.fail_on_every_rank(INPUT, "multiply", "batch.h5", ranks=2, says="shardmat batch batch.h5")

    def test_other_files_are_replaced_only_by_force(self):
        self.kinds()
        self.write("text.h5", "my notes\n")
        self.write("o.mtx", "my notes\n")
        np.savez(self.path("arrays.npz"), a=np.ones(3))
        write_vector(self.path("array.mtx"), np.ones(3))
        for name in ("matrix.h5", "array.mtx", "arrays.npz"):
            self.write(self.path(name).stem + ".json", self.path(name).read_bytes())
        before = {name: self.path(name).read_bytes() for name in self.files()}
        there = "there is a file of this name, and it is "

        def refused(*arguments, says, **options):
            self.fail_with(USAGE, *arguments, says=[there + says], **options)
        for command in (["generate", "poisson", "--n", 3], ["partition", "matrix.mtx"], ["convert", "matrix.mtx"]):
            refused(*command, "vectors.h5", says='an HDF5 file with "/loads" and "/x"; name another file, or have this one replaced (--force)')
            refused(*command, "batch.h5", says="a batch of small matrices")
            refused(*command, "mesh.h5", says="a mesh of tetrahedra")
            refused(*command, "text.h5", says="something that is no HDF5 file")
        refused("convert", "matrix.h5", "graphs.npz", says="a batch of graphs")
        refused("convert", "matrix.h5", "arrays.npz", says="a zip archive")
        refused("convert", "matrix.h5", "array.mtx", says="a Matrix Market array")
        refused("convert", "matrix.h5", "o.mtx", says="something else than a .mtx file")
        for output, says in (("matrix.h5", "a matrix in a shard file"), ("vectors.h5", 'an HDF5 file with "/loads" and "/x"'),
                             ("vectors.h5:/x", "an HDF5 file"), ("matrix.mtx", "a Matrix Market matrix"), ("text.h5", "something")):
            refused("multiply", "poisson:n=3", "--output", output, says=says)
        refused("batch", "molecules:count=3", "--output", "mesh.h5", says="a mesh")
        refused("batch", "molecules:count=3", "--save", "matrix.h5", says="a matrix in a shard file")
        for name, says in (("matrix.json", "a matrix in a shard file; name another file, or remove it"),
                           ("array.json", "a Matrix Market array"), ("arrays.json", "a zip archive")):
            refused("multiply", "poisson:n=3", "--json", name, says=says)
        refused("bench", "scaling", "poisson:n=3", "--csv", "array.mtx", says="a Matrix Market array")
        self.fail_on_every_rank(USAGE, "multiply", "poisson:n=3", "--output", "vectors.h5", ranks=2, says=there)
        self.assertEqual({name: self.path(name).read_bytes() for name in self.files()}, before)

    def test_files_of_the_same_kind_are_replaced(self):
        self.kinds()
        write_binsparse(self.path("plain.h5"), sp.identity(3))
        self.write("empty.h5", "")
        self.write("empty.mtx", "")
        for name in ("matrix.h5", "plain.h5", "empty.h5"):
            self.succeed("generate", "poisson", "--n", 4, name)
            self.succeed("verify-file", name)
        for name in ("matrix.npz", "matrix.mtx", "empty.mtx"):
            self.succeed("convert", "poisson:n=3", name)
        self.succeed("batch", "molecules:count=4", "--save", "batch.h5", "--iterations", 0)
        for name in ("y.h5", "y.h5", "y.h5:/y", "z.h5:/case/1/y", "z.h5:/case/1/y", "y.npy", "y.npy", "y.mtx", "y.mtx"):
            self.succeed("multiply", "poisson:n=3", "--output", name, "--json", "report.json")
        self.fail_with(USAGE, "multiply", "poisson:n=3", "--output", "z.h5", says="z.h5")
        with h5py.File(self.path("z.h5"), "r+") as file:
            file["case/2"] = np.ones(3)
        self.fail_with(USAGE, "multiply", "poisson:n=3", "--output", "z.h5:/case/1/y", says="--force")
        self.succeed("multiply", "poisson:n=3", "--output", "z.h5:/case/1/y", "--force")
        self.succeed("generate", "poisson", "--n", 3, "vectors.h5", "--force")
        self.succeed("convert", "poisson:n=3", "mesh.h5", "--force")
        self.succeed("partition", "matrix.mtx", "batch.h5", "--force")
        self.succeed("batch", "molecules:count=3", "--save", "matrix.h5", "--output", "y.h5", "--force")

    def test_vectors_that_do_not_fit(self):
        write_vector(self.path("x.npy"), np.ones(5))
        self.fail_on_every_rank(INPUT, "multiply", "poisson:n=4", "--x", "x.npy", says=["x.npy", "5 entries", "64"])
        self.fail_on_every_rank(INPUT, "multiply", "poisson:n=4", "--y0", "x.npy", "--beta", 1, says=["x.npy", "5 entries", "64"])
        write_vector(self.path("x.h5"), np.ones(64), "loads")
        self.fail_with(INPUT, "multiply", "poisson:n=4", "--x", "x.h5", says=["x.h5", "/x", "/loads"])
        np.savetxt(self.path("x.txt"), np.ones((64, 2)))
        scipy.io.savemat(self.path("x.mat"), {"x": np.ones((64, 2))})
        for name in ("x2.npy", "x2.mtx", "x2.h5", "x.txt", "x.mat"):
            if "2" in name:
                write_vector(self.path(name), np.ones((64, 2)))
            failed = self.fail_with(INPUT, "multiply", "poisson:n=4", "--x", name, says=name)
            self.assertTrue(failed.messages[0].endswith("(--rhs 2)"), failed)
            self.succeed("multiply", "poisson:n=4", "--x", name, "--rhs", 2)
        self.fail_on_every_rank(INPUT, "solve", "poisson:n=4", "--b", "x2.npy", "--rhs", 3, says=["(64, 2)", "3 columns", "(--rhs 2)"])
        self.fail_with(INPUT, "pagerank", "poisson:n=4", "--seeds", "x2.npy", says="(--rhs 2)")


if __name__ == "__main__":
    unittest.main()
