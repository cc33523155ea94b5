"""Sparse matrices in HDF5 files of other programs: Binsparse, AnnData, 10x Genomics."""
import json
import unittest

import h5py
import numpy as np
import scipy.sparse as sp

from support import INPUT, CliTest, read_binsparse


def random_matrix(rows, cols, seed):
    rng = np.random.default_rng(seed)
    matrix = sp.random(rows, cols, 0.3, format="csr", random_state=seed, data_rvs=lambda n: rng.normal(size=n))
    matrix.sort_indices()
    return matrix


def arrays_of(matrix, name):
    """The arrays of a Binsparse format."""
    if name.startswith("COO"):
        coo = (matrix.tocsc() if name == "COOC" else matrix.tocsr()).tocoo()
        pair = (coo.col, coo.row) if name == "COOC" else (coo.row, coo.col)
        return {"indices_0": pair[0], "indices_1": pair[1], "values": coo.data}
    packed = matrix.tocsr() if name.endswith("CSR") else matrix.tocsc()
    packed.sort_indices()
    arrays = {"pointers_to_1": packed.indptr, "indices_1": packed.indices, "values": packed.data}
    if name.startswith("D"):
        full = np.flatnonzero(np.diff(packed.indptr))
        arrays["indices_0"] = full
        arrays["pointers_to_1"] = np.append(packed.indptr[full], packed.indptr[-1])
    return arrays


def write_form(group, name, shape, arrays, structure=None, values="float64"):
    descriptor = {"version": "0.1", "format": name, "shape": list(shape),
                  "number_of_stored_values": len(arrays["indices_1"]),
                  "data_types": {key: str(array.dtype) for key, array in arrays.items()} | {"values": values}}
    if structure:
        descriptor["structure"] = structure
    group.attrs["binsparse"] = json.dumps({"binsparse": descriptor})
    for key, array in arrays.items():
        group[key] = array


class BinsparseTest(CliTest):
    def file(self, name, shape, arrays, **more):
        with h5py.File(self.path("a.h5"), "w") as file:
            write_form(file, name, shape, arrays, **more)

    def read(self, argument="a.h5"):
        self.succeed("partition", argument, "o.h5", "--parts", 1)
        return read_binsparse(self.path("o.h5"))[1].toarray()

    def test_formats(self):
        matrix = random_matrix(11, 7, 3).tolil()
        matrix[4], matrix[:, 2] = 0, 0  # an empty row and an empty column
        matrix = sp.csr_matrix(matrix)
        matrix.eliminate_zeros()
        x = np.linspace(-1, 2, 7)
        np.savetxt(self.path("x.txt"), x, fmt="%.17g")
        for name in ("CSR", "CSC", "DCSR", "DCSC", "COO", "COOR", "COOC"):
            with self.subTest(name):
                self.file(name, matrix.shape, arrays_of(matrix, name))
                np.testing.assert_array_equal(self.read(), matrix.toarray())
                for ranks in (1, 2, 3):
                    self.succeed("multiply", "a.h5", "--x", "x.txt", "--output", "y.txt", "--iterations", 0, "--no-measure",
                                 ranks=ranks)
                    np.testing.assert_allclose(np.loadtxt(self.path("y.txt")), matrix @ x, rtol=1e-13, atol=1e-14)

    def test_one_value_for_all(self):
        matrix = random_matrix(6, 9, 5)
        for name in ("CSR", "COOC"):
            arrays = arrays_of(matrix, name)
            arrays["values"] = np.array([-2.5])
            self.file(name, matrix.shape, arrays, values="iso[float64]")
            np.testing.assert_array_equal(self.read(), np.where(matrix.toarray() != 0, -2.5, 0))

    def test_triangles(self):
        full = random_matrix(8, 8, 7).toarray()
        for lower in (True, False):
            part = np.tril(full) if lower else np.triu(full)
            end = "lower" if lower else "upper"
            off = part - np.diag(np.diag(part))
            for structure, expected, stored in (("symmetric", part + off.T, part), ("skew_symmetric", off - off.T, off)):
                for name in ("CSR", "CSC", "COO"):
                    with self.subTest(structure=structure, end=end, name=name):
                        self.file(name, full.shape, arrays_of(sp.csr_matrix(stored), name), structure=f"{structure}_{end}")
                        np.testing.assert_array_equal(self.read(), expected)
            self.file("CSR", full.shape, arrays_of(sp.csr_matrix(full), "CSR"), structure=f"symmetric_{end}")
            self.fail_with(INPUT, "info", "a.h5", says=[f"the structure symmetric_{end}", "in the other triangle"])

    def test_complex(self):
        matrix = random_matrix(6, 6, 9) + 1j * random_matrix(6, 6, 11)
        hermitian = matrix + matrix.conj().T
        for stored, expected, structure in ((matrix, matrix, None), (sp.tril(hermitian), hermitian, "hermitian_lower")):
            for name in ("CSR", "COOC"):
                arrays = arrays_of(sp.csr_matrix(stored), name)
                arrays["values"] = np.ascontiguousarray(arrays["values"]).view(float)
                self.file(name, matrix.shape, arrays, structure=structure, values="complex[float64]")
                self.fail_with(INPUT, "info", "a.h5", says=["complex", "shardmat convert --complex as-real a.h5"])
                self.succeed("convert", "--complex", "as-real", "a.h5", "r.npz")
                real = sp.load_npz(self.path("r.npz")).toarray()
                expected_dense = expected.toarray()
                np.testing.assert_array_equal(real[::2, ::2], expected_dense.real)
                np.testing.assert_array_equal(real[1::2, ::2], expected_dense.imag)

    def test_groups(self):
        one, two = random_matrix(4, 5, 1), random_matrix(6, 3, 2)
        with h5py.File(self.path("a.h5"), "w") as file:
            write_form(file.create_group("first"), "COO", one.shape, arrays_of(one, "COO"))
            write_form(file.create_group("more/second"), "CSR", two.shape, arrays_of(two, "CSR"))
        np.testing.assert_array_equal(self.read("a.h5:first"), one.toarray())
        np.testing.assert_array_equal(self.read("a.h5:/more/second"), two.toarray())
        self.fail_with(INPUT, "convert", "a.h5", "o.npz",
                       says=["2 sparse matrices", "a.h5:/first", "/more/second is a sparse matrix, 6 × 3"])
        self.fail_with(INPUT, "convert", "a.h5:more", "o.npz", says=["/more is no sparse matrix", "as a.h5:/more/second"])
        self.fail_with(INPUT, "convert", "a.h5:first/values", "o.npz",
                       says=["a part of the matrix /first", "as a.h5:/first:"])
        self.assertIn("/more/second", self.succeed("info", "a.h5").out)

    def test_damage(self):
        matrix = random_matrix(6, 5, 13)
        good = arrays_of(matrix, "COO")
        for change, says in ((("indices_1", 1, 5), ["indices_1", "out of range [0, 5)"]),
                             (("indices_0", 1, -1), ["indices_0", "out of range [0, 6)"])):
            arrays = {key: array.copy() for key, array in good.items()}
            arrays[change[0]][change[1]] = change[2]
            self.file("COO", matrix.shape, arrays)
            self.fail_with(INPUT, "info", "a.h5", says=says)
        twice = {key: np.concatenate([array, array[-1:]]) for key, array in good.items()}
        self.file("COO", matrix.shape, twice)
        self.fail_with(INPUT, "info", "a.h5", says=["row 5, column", "comes twice"])
        self.fail_with(INPUT, "multiply", "a.h5", says=["comes twice"], ranks=2)
        self.file("DMAT", matrix.shape, good)
        self.fail_with(INPUT, "info", "a.h5", says=["DMAT", "CSC, DCSR"])
        self.file("CSC", matrix.shape, arrays_of(matrix, "CSR"))
        self.fail_with(INPUT, "info", "a.h5", says=["pointers_to_1", "must have 6"])
        skew = sp.csr_matrix(np.array([[1.0, 0], [2, 0]]))
        self.file("CSR", skew.shape, arrays_of(skew, "CSR"), structure="skew_symmetric_lower")
        self.fail_with(INPUT, "info", "a.h5", says=["skew-symmetric", "diagonal of row 0"])


class AnnDataTest(CliTest):
    def setUp(self):
        super().setUp()
        self.matrix = random_matrix(7, 5, 21)
        with h5py.File(self.path("a.h5ad"), "w") as file:
            for name, matrix in (("X", self.matrix), ("layers/counts", (2 * self.matrix).tocsc())):
                group = file.create_group(name)
                group.attrs["encoding-type"], group.attrs["shape"] = f"{matrix.format}_matrix", matrix.shape
                group["data"], group["indices"], group["indptr"] = matrix.data, matrix.indices, matrix.indptr
            file.create_group("obs")

    def read(self, argument):
        self.succeed("convert", argument, "o.npz")
        return sp.load_npz(self.path("o.npz")).toarray()

    def test_groups(self):
        np.testing.assert_array_equal(self.read("a.h5ad:X"), self.matrix.toarray())
        np.testing.assert_array_equal(self.read("a.h5ad:/layers/counts"), 2 * self.matrix.toarray())
        self.fail_with(INPUT, "convert", "a.h5ad", "o.npz", says=["2 sparse matrices", "a.h5ad:/X", "/layers/counts is a"])
        self.fail_with(INPUT, "convert", "a.h5ad:layers", "o.npz", says=["as a.h5ad:/layers/counts"])
        self.fail_with(INPUT, "convert", "a.h5ad:obs", "o.npz", says=["/obs is no sparse matrix", "as a.h5ad:/X"])
        self.fail_with(INPUT, "convert", "a.h5ad/X", "o.npz", says=["a.h5ad is a file", "a.h5ad:X"])

    def test_10x(self):
        matrix = sp.csc_matrix(np.round(10 * self.matrix.toarray()))
        with h5py.File(self.path("b.h5"), "w") as file:
            group = file.create_group("matrix")
            group["data"], group["indices"], group["indptr"] = matrix.data.astype("i4"), matrix.indices, matrix.indptr
            group["shape"], group["barcodes"] = np.array(matrix.shape, "i4"), np.array([b"a", b"b", b"c", b"d", b"e"])
        np.testing.assert_array_equal(self.read("b.h5"), matrix.toarray())
        self.fail_with(INPUT, "convert", "b.h5:matrix/data", "o.npz", says=["a part of the matrix /matrix", "b.h5:/matrix"])

    def test_without_a_format(self):
        square = random_matrix(5, 5, 23)
        for matrix, says in ((self.matrix, None), (square, ["by rows or by columns", "encoding-type"])):
            with h5py.File(self.path("c.h5"), "w") as file:
                group = file.create_group("A")
                group["data"], group["indices"], group["indptr"] = matrix.data, matrix.indices, matrix.indptr
                group.attrs["shape"] = matrix.shape
            if says:
                self.fail_with(INPUT, "convert", "c.h5", "o.npz", says=says)
            else:
                np.testing.assert_array_equal(self.read("c.h5"), matrix.toarray())

    def test_directories(self):
        self.path("d").mkdir()
        self.path("a.h5ad").rename(self.path("d/a.h5ad"))
        self.write("d/note.txt", "nothing")
        self.fail_with(INPUT, "convert", "d", "o.npz", says=["it is a directory", "d/a.h5ad"])


if __name__ == "__main__":
    unittest.main()
