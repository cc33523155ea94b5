"""Files of every kind become each other without a bit lost; storage formats are tried by name."""

import re
import unittest

import numpy as np
import scipy.io
import scipy.sparse as sp

from support import DATA, INPUT, RESOURCES, USAGE, CliTest, fem_matrix, file_size_limit, read_binsparse


def read(path):
    if path.suffix == ".npz":
        return sp.load_npz(path)
    return read_binsparse(path)[1] if path.suffix == ".h5" else scipy.io.mmread(str(path)).tocsr()


class Files(CliTest):
    def expect(self, name, matrix):
        found = read(self.path(name))
        self.assertEqual((found.shape, found.nnz), (matrix.shape, matrix.nnz))
        np.testing.assert_array_equal(found.indptr, matrix.indptr)
        np.testing.assert_array_equal(found.indices, matrix.indices)
        np.testing.assert_array_equal(found.data.view(np.int64), matrix.data.view(np.int64))

    def test_round_through_all_kinds(self):
        matrix = fem_matrix("convection")
        source = DATA / "convection.mtx.gz"
        for number, suffix in enumerate((".npz", ".h5", ".mtx", ".h5", ".npz", ".mtx")):
            self.succeed("convert", source, f"{number}{suffix}")
            self.expect(f"{number}{suffix}", matrix)
            source = f"{number}{suffix}"

    def test_values_keep_every_bit(self):
        rng = np.random.default_rng(1)
        matrix = sp.random(60, 70, density=0.3, format="csr", random_state=1)
        bits = rng.integers(0, 2**63, matrix.nnz, dtype=np.int64)
        values = bits.view(np.float64)
        matrix.data = np.where(np.isfinite(values), values, 5e-324)
        sp.save_npz(self.path("a.npz"), matrix)
        self.succeed("convert", "a.npz", "a.mtx")
        self.succeed("convert", "a.mtx", "b.npz")
        self.expect("b.npz", matrix)

    def test_the_header_of_text(self):
        self.succeed("convert", "poisson:n=4", "a.mtx")
        lines = self.path("a.mtx").read_text().splitlines()
        self.assertEqual(lines[0], "%%MatrixMarket matrix coordinate real general")
        self.assertEqual(lines[1], "64 64 1000")
        self.assertEqual(len(lines), 1002)
        self.assertRegex(lines[2], r"^1 1 [0-9.e-]+$")

    def test_sorted_rows_go_back_to_their_order(self):
        self.succeed("generate", "rmat", "--scale", 7, "a.h5")
        self.succeed("partition", "a.h5", "sorted.h5", "--sort", "global")
        for name in ("a.mtx", "a.npz"):
            self.succeed("convert", "sorted.h5", name)
            self.expect(name, read(self.path("a.h5")))

    def test_matrices_without_entries(self):
        for shape in ((0, 0), (3, 0), (0, 3), (4, 5)):
            sp.save_npz(self.path("a.npz"), sp.csr_matrix(shape))
            for name in ("a.mtx", "b.npz"):
                self.succeed("convert", "a.npz", name)
                if shape == (4, 5) or name == "b.npz":  # SciPy itself cannot read text without rows
                    self.expect(name, sp.csr_matrix(shape))
            self.succeed("convert", "a.mtx", "c.npz")
            self.expect("c.npz", sp.csr_matrix(shape))

    def test_a_full_disk_leaves_nothing(self):
        for name in ("a.mtx", "a.npz"):
            self.fail_with(RESOURCES, "convert", "poisson:n=20", name, says=["cannot write", name],
                           preexec_fn=file_size_limit(1 << 20))

    def test_mistakes(self):
        self.write("bad.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n")
        self.fail_with(INPUT, "convert", "bad.mtx", "o.npz", says="bad.mtx:2")
        self.fail_with(INPUT, "convert", "none.mtx", "o.npz", says=["none.mtx", "no such file"])
        self.fail_with(USAGE, "convert", "none.mtx", "o.txt", says=["o.txt", ".mtx, .npz"])
        self.fail_with(INPUT, "convert", "poisson:n=300", "none/o.mtx", limit=10, says="create it first")
        self.fail_with(USAGE, "convert", "poisson:n=4", says="--format")
        self.fail_with(USAGE, "convert", "poisson:n=4", "o.mtx", "--format", "csr", says="--format")


class Formats(CliTest):
    def test_all_formats_say_what_they_take(self):
        listed = self.succeed("convert", "--help").out.split("Storage formats:\n")[1].split('"over')[0]
        names = re.findall(r"(?m)^  (\w+) ", listed)
        self.assertIn("csr", names)
        for type, entry in (("f32", 8), ("f64", 12)):
            text = self.succeed("convert", "poisson:n=6", "--format", "all", "--type", type, "--backend", "host").out
            for name in names:
                self.assertRegex(text, rf"(?m)^  {name} ")
            bytes_each = (4 * 217 + entry * 4096) / 4096
            self.assertRegex(text, rf"(?m)^  csr .* {bytes_each:.2f} B .*\+")

    def test_one_format_by_name(self):
        text = self.succeed("convert", DATA / "stokes.mtx.gz", "--format", "csr", "--backend", "host").out
        self.assertEqual(len(re.findall(r"(?m)^  csr ", text)), 1)

    def test_an_unknown_format(self):
        self.fail_with(USAGE, "convert", "poisson:n=4", "--format", "crs", says=["'crs'", "did you mean 'csr'?"])


if __name__ == "__main__":
    unittest.main()
