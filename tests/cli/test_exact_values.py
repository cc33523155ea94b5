"""Values that would be changed without a word: integers that f64 rounds, imaginary parts on a Hermitian diagonal, commas."""

import unittest

import h5py
import numpy as np
import scipy.io
import scipy.sparse as sp

from support import INPUT, CliTest

EXACT, ROUNDED = 2**53, 2**53 + 1


class ExactValues(CliTest):
    def refused(self, name, *texts, kind=("convert", "{}", "out.h5")):
        self.fail_with(INPUT, *(word.format(name) for word in kind), says=texts)

    def matrix(self, dtype, value):
        return sp.csr_matrix((np.array([3, value, -5 if dtype == np.int64 else 5], dtype), ([0, 1, 2], [1, 2, 0])), shape=(3, 3))

    def test_integers_that_would_be_rounded(self):
        for dtype, value, fits in ((np.int64, ROUNDED, False), (np.int64, -ROUNDED, False), (np.int64, EXACT, True),
                                   (np.uint64, 2**63 + 1, False), (np.uint64, 2**63, True), (np.int64, -(2**63), True),
                                   (np.int64, 3 * 2**60, True)):
            with self.subTest(dtype=dtype, value=value):
                a = self.matrix(dtype, value)
                sp.save_npz(self.path("a.npz"), a)
                rest = "-5" if dtype == np.int64 else "5"
                field = "integer" if dtype == np.int64 else "unsigned-integer"
                self.write("a.mtx", f"%%MatrixMarket matrix coordinate {field} general\n3 3 3\n1 2 3\n2 3 {value}\n3 1 {rest}\n")
                with h5py.File(self.path("a.h5"), "w") as file:
                    for key, array in (("data", a.data), ("indices", a.indices), ("indptr", a.indptr), ("shape", np.array(a.shape))):
                        file["m/" + key] = array
                    file["m"].attrs["encoding-type"] = "csr_matrix"
                    file["m"].attrs["shape"] = np.array(a.shape)
                for name in ("a.npz", "a.mtx", "a.h5:/m"):
                    if fits:
                        self.succeed("convert", name, "out.npz", "--force")
                        self.assertEqual(sp.load_npz(self.path("out.npz"))[1, 2], float(value))
                    else:
                        self.refused(name, str(value), "beyond 2^53", "rounded")

    def test_the_field_real_is_rounded(self):
        self.write("a.mtx", f"%%MatrixMarket matrix coordinate real general\n2 2 1\n2 1 {ROUNDED}\n")
        self.succeed("convert", "a.mtx", "out.npz")
        self.assertEqual(sp.load_npz(self.path("out.npz"))[1, 0], float(EXACT))

    def test_a_hermitian_diagonal_is_real(self):
        head = "%%MatrixMarket matrix coordinate complex hermitian\n2 2 3\n1 1 2 0\n2 1 1 -4\n"
        kind = ("convert", "--complex", "as-real", "{}", "out.npz", "--force")
        self.write("a.mtx", head + "2 2 5 0.5\n")
        self.refused("a.mtx", "a.mtx:5", "0.5", "diagonal at row 2", "general", kind=kind)
        self.write("a.mtx", head + "2 2 5 -0.0\n")
        self.succeed(*(word.format("a.mtx") for word in kind))

    def test_long_doubles_are_called_so(self):
        sp.save_npz(self.path("a.npz"), sp.eye(3, dtype=np.longdouble, format="csr"))
        self.refused("a.npz", "long doubles of 16 bytes", "astype('<f8')")

    def test_commas_in_numbers(self):
        self.write("a.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n2 1 1,5\n")
        self.refused("a.mtx", "a.mtx:3", "1,5", "point instead of the comma")
        sp.save_npz(self.path("a.npz"), sp.csr_matrix(np.array([[1.0, 2], [0, 3]])))
        self.write("x.txt", "1,5\n2,5\n")
        self.refused("a.npz", "x.txt:1", "comma", "point", kind=("multiply", "{}", "--x", "x.txt", "--output", "y.txt"))


if __name__ == "__main__":
    unittest.main()
