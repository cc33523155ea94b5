"""Files as programs and systems leave them: marks of Windows, padding, compression, types that are rarely used."""
import bz2
import gzip
import lzma
import shutil
import struct
import subprocess
import unittest
import zlib

import numpy as np
import scipy.io
import scipy.sparse as sp

from support import INPUT, CliTest

MARK, END = b"\xef\xbb\xbf", b"\x1a"
A = sp.csr_matrix(np.array([[4.5, 0, -1.5], [0, 1.25, 0], [-1.5, 0, 6]]))
X = np.array([1.5, -2.0, 0.75])


def element(kind, data):
    return struct.pack("<II", kind, len(data)) + data + b"\0" * (-len(data) % 8)


def mat_head():
    return b"MATLAB 5.0 MAT-file, made by a test".ljust(124) + b"\x00\x01IM"


def array_flags(kind, flags=0, room=0):
    return element(6, struct.pack("<II", kind | flags << 8, room))


def mat_sparse(name, matrix, logical=False, spare=0):
    """A sparse variable. MATLAB names the values of a logical one doubles, and stores a byte each. `spare`: places for more
    nonzeros than there are; their row indices and values are stored, too."""
    columns = sp.csc_matrix(matrix)
    columns.sort_indices()
    data = np.concatenate([columns.data, np.zeros(spare, columns.dtype)])
    rows = np.concatenate([columns.indices, np.zeros(spare, np.int32)])
    values = (struct.pack("<II", 9, len(data)) + data.astype("u1").tobytes() + b"\0" * (-len(data) % 8) if logical
              else element(9, data.astype("<f8").tobytes()))
    return element(14, array_flags(5, 2 if logical else 0, max(1, len(data))) +
                   element(5, struct.pack("<ii", *columns.shape)) + element(1, name.encode()) + element(5, rows.astype("<i4").tobytes()) +
                   element(5, columns.indptr.astype("<i4").tobytes()) + values)


def mat_string(name):
    """A string or a table: an opaque object, type 17."""
    inner = element(14, array_flags(13) + element(5, struct.pack("<ii", 6, 1)) + element(1, b"") +
                    element(6, np.array([0xdd000000, 2, 1, 1, 1, 1], "<u4").tobytes()))
    return element(14, array_flags(17) + element(1, name.encode()) + element(1, b"MCOS") + element(1, b"string") + inner)


def packed(data):
    data = zlib.compress(data)
    return struct.pack("<II", 15, len(data)) + data


class OddFilesTest(CliTest):
    def read(self, name, *options):
        self.succeed("convert", name, "o.npz", *options)
        return sp.load_npz(self.path("o.npz")).toarray()

    def product(self, vector, *options, ranks=0):
        sp.save_npz(self.path("A_.npz"), A)
        self.succeed("multiply", "A_.npz", "--x", vector, "--output", "y_.npy", "--iterations", 0, "--no-measure", *options,
                     ranks=ranks)
        return np.load(self.path("y_.npy"))


class MatTest(OddFilesTest):
    def test_logical(self):
        small = np.array([[1, 0, 0, 1], [0, 1, 1, 0], [0, 0, 1, 0]])
        large = (np.add.outer(np.arange(9), 2 * np.arange(7)) % 3 == 0).astype(int)
        for matrix in (small, large):
            for pack in (bytes, packed):
                self.write("a.mat", mat_head() + pack(mat_sparse("A", matrix, logical=True)))
                np.testing.assert_array_equal(scipy.io.loadmat(self.path("a.mat"))["A"].toarray(), matrix)
                np.testing.assert_array_equal(self.read("a.mat"), matrix)

    def test_room_to_spare(self):
        """nzmax above the number of nonzeros: with so many places that the stored bytes would do for doubles of the nonzeros."""
        small = np.array([[1, 0, 0, 1], [0, 1, 1, 0], [0, 0, 1, 0]])
        large = (np.add.outer(np.arange(9), 2 * np.arange(7)) % 3 == 0).astype(int)
        for matrix in (small, large):
            for spare in (1, 3, 7 * np.count_nonzero(matrix), 8 * np.count_nonzero(matrix), 500):
                for logical in (False, True):
                    for pack in (bytes, packed):
                        values = matrix if logical else matrix * (np.arange(matrix.size).reshape(matrix.shape) + 0.5)
                        self.write("a.mat", mat_head() + pack(mat_sparse("A", values, logical, spare)))
                        with self.subTest(spare=spare, logical=logical, packed=pack is packed):
                            np.testing.assert_array_equal(self.read("a.mat"), values)

    def test_strings_and_tables_beside_the_matrix(self):
        for pack in (bytes, packed):
            matrix, other = pack(mat_sparse("A", A)), pack(mat_string("s"))
            for order in (other + matrix, matrix + other, other + matrix + other):
                self.write("a.mat", mat_head() + order)
                np.testing.assert_array_equal(self.read("a.mat"), A.toarray())
                np.testing.assert_array_equal(self.read("a.mat:A"), A.toarray())

    def test_zeros_behind(self):
        for count in (8, 512, 5):
            for pack in (bytes, packed):
                self.write("a.mat", mat_head() + pack(mat_sparse("A", A)) + b"\0" * count)
                np.testing.assert_array_equal(self.read("a.mat"), A.toarray())


class MarketTest(OddFilesTest):
    def test_unsigned_integers(self):
        matrix = sp.coo_matrix(np.array([[3, 0, 200], [0, 7, 0]], np.uint8))
        scipy.io.mmwrite(self.path("a.mtx"), matrix)
        text = self.path("a.mtx").read_text()
        if "unsigned-integer" not in text:  # which newer SciPy writes
            text = text.replace(" integer ", " unsigned-integer ", 1)
        self.write("a.mtx", text)
        np.testing.assert_array_equal(self.read("a.mtx"), matrix.toarray())
        self.write("b.mtx", "%%MatrixMarket matrix array unsigned-integer general\n3 1\n1\n5\n2\n")
        np.testing.assert_array_equal(self.product("b.mtx"), A @ [1, 5, 2])
        self.write("c.mtx", text.replace("200", "-2"))
        self.fail_with(INPUT, "info", "c.mtx", says=["c.mtx:"])

    def test_one_number_is_symmetric(self):
        self.write("b.mtx", "%%MatrixMarket matrix array real symmetric\n%\n1 1\n-2.5\n")  # as SciPy writes [[-2.5]]
        self.write("a.mtx", "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 4\n")
        self.succeed("multiply", "a.mtx", "--x", "b.mtx", "--output", "y.npy", "--iterations", 0, "--no-measure")
        np.testing.assert_array_equal(np.load(self.path("y.npy")), [-10])

    def test_skew_with_zeros_on_the_diagonal(self):
        text = "%%MatrixMarket matrix coordinate {} skew-symmetric\n3 3 5\n1 1 0\n2 1 4\n2 2 0\n3 2 -2\n3 3 {}\n"
        for field in ("real", "integer"):
            self.write("a.mtx", text.format(field, 0))
            np.testing.assert_array_equal(self.read("a.mtx"), [[0, -4, 0], [4, 0, 2], [0, -2, 0]])
            self.write("a.mtx", text.format(field, 3))
            self.fail_with(INPUT, "info", "a.mtx", says=["a.mtx:7", "diagonal"])


class MarksTest(OddFilesTest):
    """A mark of the byte order goes before text, and Ctrl-Z behind it: editors and copies of Windows and DOS."""

    def check(self, name, text, read, write=None):
        plain = text.encode()
        for data in (MARK + plain, plain + END, plain + 65 * END, plain + 5000 * END + b"\r\n" + 9000 * END, MARK + plain.replace(b"\n", b"\r\n") + END,
                     plain + b"\n" + END):
            with self.subTest(name=name, data=data[:10] + b" ... " + data[-10:]):
                (write or self.write)(name, data)
                read()

    def test_matrices(self):
        market = "%%MatrixMarket matrix coordinate real general\n3 3 5\n1 1 4.5\n1 3 -1.5\n2 2 1.25\n3 1 -1.5\n3 3 6\n"
        entries = "1 1 4.5\n2 2 1.25\n3 1 -1.5\n3 3 6\n"
        freefem = "#  Sparse Matrix (Morse)\n# first line: n m (is symmetic) nnz\n3 3 0 5\n" + "".join(
            f"{i} {j} {v}\n" for i, j, v in ((1, 1, 4.5), (1, 3, -1.5), (2, 2, 1.25), (3, 1, -1.5), (3, 3, 6)))
        labels = "** text\n1,1, 1,1, 4.5\n1,2, 1,2, 1.25\n2,1, 1,1, -1.5\n2,1, 2,1, 6\n"
        hypre = "0 2 0 2\n0 0 4.5\n0 2 -1.5\n1 1 1.25\n2 0 -1.5\n2 2 6\n"
        cases = [("a.mtx", market, ()), ("job_STIF1.mtx", entries, ()), ("K.mtx", labels, ()), ("f.txt", freefem, ()),
                 ("IJ.00000", hypre, ()),
                 ("l.ijv", entries, ("--input-format", "triplets", "--base", 1, "--triangle", "lower"))]
        for name, text, options in cases:
            self.check(name, text, lambda: np.testing.assert_array_equal(self.read(name, *options), A.toarray()))
        self.write("s.dof", MARK + b"1.1\r\n1.2\r\n2.1\r\n" + END)
        self.check("s.sti", "1 1 4.5\n2 2 1.25\n1 3 -1.5\n3 3 6\n",
                   lambda: np.testing.assert_array_equal(self.read("s.sti"), A.toarray()))
        scipy.io.hb_write(str(self.path("a.rua")), A.tocsc())
        self.check("a.rua", self.path("a.rua").read_text(),
                   lambda: np.testing.assert_array_equal(self.read("a.rua"), A.toarray()))
        self.check("a.mtx.gz", market, lambda: np.testing.assert_array_equal(self.read("a.mtx.gz"), A.toarray()),
                   lambda name, data: self.write(name, gzip.compress(data)))

    def test_vectors(self):
        lines = "".join(f"{v}\n" for v in X)
        for name, text in (("x.txt", lines), ("x.mtx", "%%MatrixMarket matrix array real general\n3 1\n" + lines),
                           ("f.txt", "3\t\n\t" + "\t".join(f"{v:10}" for v in X) + "\n"),
                           ("v.00000", "0 2\n" + "".join(f"{i} {v}\n" for i, v in enumerate(X)))):
            self.check(name, text, lambda: np.testing.assert_array_equal(self.product(name), A @ X))


class CompressedTest(OddFilesTest):
    market = b"%%MatrixMarket matrix coordinate real general\n3 3 5\n1 1 4.5\n1 3 -1.5\n2 2 1.25\n3 1 -1.5\n3 3 6\n"
    array = b"%%MatrixMarket matrix array real general\n3 1\n1.5\n-2\n0.75\n"

    def compressors(self):
        yield "gz", gzip.compress
        yield "bz2", bz2.compress
        yield "xz", lzma.compress
        if shutil.which("zstd"):
            yield "zst", lambda data: subprocess.run(["zstd", "-c"], input=data, capture_output=True, check=True).stdout

    def test_all_of_them(self):
        for suffix, compress in self.compressors():
            with self.subTest(suffix):
                half = len(self.market) // 2
                for data in (compress(self.market), compress(self.market[:half]) + compress(self.market[half:])):
                    self.write(f"a.mtx.{suffix}", data)
                    result = self.call("convert", f"a.mtx.{suffix}", "o.npz")
                    if "this build of shardmat cannot read" in result.err:
                        self.assertEqual(result.code, INPUT)
                        self.assertIn("build with the package lib", result.err)
                        continue
                    np.testing.assert_array_equal(self.read(f"a.mtx.{suffix}"), A.toarray())
                    self.write(f"b.mtx.{suffix}", compress(self.array))
                    for ranks in (0, 2):
                        np.testing.assert_array_equal(self.product(f"b.mtx.{suffix}", ranks=ranks), A @ X)
                    self.write(f"a.mtx.{suffix}", data[:-9])
                    self.fail_with(INPUT, "info", f"a.mtx.{suffix}", says=[f"a.mtx.{suffix}"])
                    wrong = bytearray(data)
                    wrong[len(data) // 2] ^= 0x55
                    self.write(f"a.mtx.{suffix}", bytes(wrong))
                    self.fail_with(INPUT, "info", f"a.mtx.{suffix}", says=[f"a.mtx.{suffix}"])

    def test_zeros_behind_gzip(self):
        for count in (1, 3, 512, 100_000):
            self.write("a.mtx.gz", gzip.compress(self.market) + b"\0" * count)
            np.testing.assert_array_equal(self.read("a.mtx.gz"), A.toarray())
        self.write("a.mtx.gz", gzip.compress(self.market[:50]) + gzip.compress(self.market[50:]) + b"\0" * 3)
        np.testing.assert_array_equal(self.read("a.mtx.gz"), A.toarray())
        self.write("a.mtx.gz", gzip.compress(self.market) + b"\0" * 3 + b"x")
        self.fail_with(INPUT, "info", "a.mtx.gz", says=["a.mtx.gz"])


class NumpyTest(OddFilesTest):
    def test_diagonals_and_blocks(self):
        rng = np.random.default_rng(8)
        for shape in ((6, 6), (4, 7), (7, 4)):
            diagonals = sp.dia_matrix((rng.normal(size=(4, 7)), [-2, 0, 1, 3]), shape=shape)
            sp.save_npz(self.path("a.npz"), diagonals)
            np.testing.assert_array_equal(self.read("a.npz"), diagonals.toarray())
        for block in ((2, 2), (1, 3), (3, 2)):
            dense = np.kron(rng.integers(0, 2, (3, 2)), np.ones(block)) * rng.normal(size=(3 * block[0], 2 * block[1]))
            blocks = sp.bsr_matrix(dense, blocksize=block)
            sp.save_npz(self.path("b.npz"), blocks)
            np.testing.assert_array_equal(self.read("b.npz"), dense)

    def test_vectors_of_other_byte_orders(self):
        for kind in (">f8", ">f4", ">i4", ">i2", ">u8"):
            x = np.array([1, 300, 2] if kind[1] in "iu" else X, kind)
            np.save(self.path("x.npy"), x)
            np.testing.assert_array_equal(self.product("x.npy"), A @ x.astype(float))


if __name__ == "__main__":
    unittest.main()
