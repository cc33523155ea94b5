"""Products with SciPy matrices, NumPy arrays and DLPack tensors, and new values, against SciPy."""

import unittest

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl

import shardmat
from checks import refused, tridiagonal


class PlainDlpack:
    """An array that has nothing but DLPack."""

    def __init__(self, array):
        self._array = array
        self.shape, self.ndim = array.shape, array.ndim

    def __dlpack__(self, stream=None):
        return self._array.__dlpack__(stream=stream)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class Products(unittest.TestCase):
    def test_every_format_of_scipy(self):
        a = sp.random(37, 23, 0.2, random_state=1)
        x = np.random.default_rng(2).random((23, 3))
        for kind in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia"):
            np.testing.assert_allclose(shardmat.Matrix.from_scipy(a.asformat(kind)) @ x, a @ x, atol=1e-14)
        twice = sp.coo_matrix(([1.0, 2.0], ([0, 0], [1, 1])), shape=(2, 2))
        np.testing.assert_array_equal(shardmat.Matrix.from_scipy(twice) @ np.ones(2), [3, 0])

    def test_types_and_layouts(self):
        a = tridiagonal(40)
        for dtype in (np.float64, np.float32):
            m = shardmat.Matrix.from_scipy(a.astype(dtype))
            self.assertEqual(m.dtype, dtype)
            wide = np.random.default_rng(3).random((40, 8))
            for x in (wide, np.asfortranarray(wide), wide[:, ::2], wide[::-1], wide[:, 0], wide.astype(np.float32),
                      np.arange(40), [1] * 40):
                y = m @ x
                self.assertEqual(y.dtype, dtype)
                np.testing.assert_allclose(y, a @ np.asarray(x), rtol=1e-5, atol=1e-5)
        half = shardmat.Matrix.from_scipy(a, dtype="float16")
        np.testing.assert_allclose(half @ np.ones((40, 2)), a @ np.ones((40, 2)), atol=1e-3)

    def test_out_alpha_beta(self):
        a, x = tridiagonal(30), np.ones((30, 2))
        with shardmat.Matrix.from_scipy(a) as m, m.product(2) as product:
            y = np.full((30, 2), 7.0)
            self.assertIs(product.multiply(x, out=y, alpha=2, beta=-1), y)
            np.testing.assert_allclose(y, 2 * (a @ x) - 7)
            self.assertEqual(product.info()["columns"], 2)
            with self.assertRaisesRegex(ValueError, "read-only"):
                y.flags.writeable = False
                product.multiply(x, out=y)
        with self.assertRaisesRegex(ValueError, "closed"):
            m @ x
        with self.assertRaisesRegex(ValueError, "closed"):
            product.multiply(x)
        with shardmat.Matrix.from_scipy(a).solver("gmres") as solver:
            pass
        with self.assertRaisesRegex(ValueError, "solver is closed"):
            solver.solve(np.ones(30))

    def test_dlpack(self):
        a, x = tridiagonal(30), np.random.default_rng(4).random(30)
        m = shardmat.Matrix.from_scipy(a)
        out = shardmat.empty(30)
        m.product().multiply(PlainDlpack(x), out=out)
        np.testing.assert_allclose(np.from_dlpack(out), a @ x)
        again = np.zeros(30)
        m.product().multiply(out, out=PlainDlpack(again))
        np.testing.assert_allclose(again, a @ (a @ x))
        np.testing.assert_allclose(m @ PlainDlpack(x), a @ x)
        kept = np.from_dlpack(shardmat.empty((5, 2), "float32"))  # keeps the memory
        self.assertEqual((kept.shape, kept.dtype), ((5, 2), np.float32))
        out.__dlpack__()  # nobody takes it

    def test_describes_itself(self):
        m = shardmat.Matrix.from_scipy(tridiagonal(30))
        self.assertEqual(m.info()["backend"], m.context.info()["backend"])
        self.assertIn("<td>(30, 30)</td>", m._repr_html_())
        np.testing.assert_array_equal(m.row_ids(), np.arange(30))

    def test_file_and_transpose(self):
        m = shardmat.Matrix.from_file("poisson7:n=5")
        x = np.random.default_rng(5).random(125)
        np.testing.assert_allclose(m.T @ x, m @ x)  # it is symmetric
        shifted = sp.random(20, 30, 0.3, random_state=6).tocsr()
        rectangular = shardmat.Matrix.from_scipy(shifted)
        np.testing.assert_allclose(rectangular.T @ np.arange(20.0), shifted.T @ np.arange(20.0))
        for back in (m, rectangular):
            self.assertIs(back.T.T, back)
            self.assertEqual((back.T.shape, back.T.own_shape, back.T.nnz, back.T.dtype),
                             (back.shape[::-1], back.own_shape[::-1], back.nnz, back.dtype))
        self.assertEqual(shardmat.Matrix.from_scipy(shifted).T.T.shape, (20, 30))  # the transpose keeps its matrix
        changing = shardmat.Matrix.from_scipy(shifted, updatable=True)
        turned = changing.T
        changing.update_values(2 * shifted.data)
        np.testing.assert_allclose(turned @ np.arange(20.0), 2 * (shifted.T @ np.arange(20.0)))
        with self.assertRaisesRegex(NotImplementedError, "transposed=True"):
            turned.solve(np.ones(30))
        with self.assertRaisesRegex(shardmat.UsageError, "X is 30 × 1"):
            rectangular.T @ np.ones(30)

    def test_products_with_the_transpose(self):
        random = np.random.default_rng(9)
        a = sp.random(70, 40, 0.2, random_state=8).tolil()
        a[[3, 4, 69]] = 0  # rows and columns without entries
        a[:, [0, 11]] = 0
        a = a.tocsr()
        a.eliminate_zeros()
        host = shardmat.Matrix.from_scipy(a).info()["backend"] == "host"
        for dtype, near in ((np.float64, 1e-13), (np.float32, 1e-5)):
            for kernel in (None, "csr_host", "sell_host") if host else (None,):
                m = shardmat.Matrix.from_scipy(a.astype(dtype), kernel=kernel)
                for x in (random.random(70), random.random((70, 1)), random.random((70, 5)), random.random((5, 70)).T):
                    y = m.T @ x.astype(dtype)
                    np.testing.assert_allclose(y, a.T @ x, rtol=near, atol=near)
                    self.assertEqual(y.dtype, dtype)
                    np.testing.assert_array_equal(y, m.T @ x.astype(dtype))  # the same bits
                    np.testing.assert_allclose(m.rmatvec(x) if x.ndim == 1 else m.rmatmat(x), a.T @ x, rtol=near, atol=near)
                if kernel == "csr_host":  # no second matrix, and no map
                    one = shardmat.Matrix.from_scipy(a.astype(dtype), kernel=kernel)
                    one @ np.ones(40)
                    self.assertEqual(m.info()["device_bytes"], one.info()["device_bytes"])
        m = shardmat.Matrix.from_scipy(a)
        x, y = random.random((70, 3)), random.random((40, 3))
        product = m.T.product(3)
        self.assertGreater(len(product.info()["kernel"]), 0)
        np.testing.assert_allclose(product.multiply(x, y.copy(), alpha=2, beta=-0.5), 2 * (a.T @ x) - 0.5 * y, atol=1e-13)
        np.testing.assert_allclose(product @ x, a.T @ x, atol=1e-13)
        for operator, dense in ((m.as_linear_operator(), a), (m.T.as_linear_operator(), a.T)):
            v, w = random.random(dense.shape[1]), random.random(dense.shape[0])
            np.testing.assert_allclose(operator.matvec(v), dense @ v, atol=1e-13)
            np.testing.assert_allclose(operator.rmatvec(w), dense.T @ w, atol=1e-13)
        b = random.random(70)
        np.testing.assert_allclose(spl.lsqr(m, b, atol=1e-13, btol=1e-13)[0],
                                   spl.lsqr(a, b, atol=1e-13, btol=1e-13)[0], atol=1e-8)
        if host:
            normal = (a.T @ a).tocsr()
            symmetric = shardmat.Matrix.from_scipy(normal, storage="symmetric")
            np.testing.assert_allclose(symmetric.T @ np.arange(40.0), normal @ np.arange(40.0), rtol=1e-12)

    def test_no_columns(self):
        a = sp.random(20, 30, 0.3, random_state=6).tocsr()
        for dtype in (np.float64, np.float32):
            m = shardmat.Matrix.from_scipy(a.astype(dtype))
            for x in (np.zeros((30, 0), dtype), np.zeros((30, 0))):
                y = m @ x
                self.assertEqual((y.shape, y.dtype), ((20, 0), dtype))
        with self.assertRaises(ValueError):
            m @ np.zeros((20, 0))


class SmallTypes(unittest.TestCase):
    """Sums of entries of the same place, in types that cannot hold them."""

    TYPES = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64, np.uint64, bool, np.float32, np.float64, np.longdouble)

    def cases(self):
        """(matrix with duplicates, its dense values) for every type: rows (5, 4), columns up to 6."""
        for kind in self.TYPES:
            most = 1 if kind is bool else 0.75 * np.iinfo(kind).max if np.issubdtype(kind, np.integer) else 1.5
            most = min(most, 2**40)
            place = np.array([1, 0, 0, 2, 2, 2, 5, 0, 3, 3])
            data = np.array([most, most, most, most, most, most / 2, 1, 0, most, most]).astype(kind)
            rows = np.repeat(np.arange(4), [3, 4, 0, 3])
            dense = np.zeros((4, 6))
            np.add.at(dense, (rows, place), data.astype(float))
            csr = sp.csr_matrix((data, place, [0, 3, 7, 7, 10]), shape=(4, 6))
            coo = sp.coo_matrix((data, (rows, place)), shape=(4, 6))
            csc = sp.csc_matrix((data, place, [0, 3, 7, 7, 10]), shape=(6, 4))
            yield from ((csr, dense), (coo, dense), (csc, dense.T), (sp.csr_array(csr), dense), (sp.coo_array(coo), dense))

    def test_sums_of_duplicates(self):
        for given, dense in self.cases():
            before = given.data.copy()
            x = np.random.default_rng(1).random(dense.shape[1])
            for m in (shardmat.Matrix.from_scipy(given), shardmat.Matrix.from_rows(given)):
                np.testing.assert_allclose(m @ x, dense @ x, rtol=1e-6, err_msg=f"{given.dtype} {given.format}")
                self.assertEqual(m.dtype, np.float32 if given.dtype == np.float32 else np.float64)
            np.testing.assert_allclose(shardmat.Matrix.from_scipy(given).T @ np.arange(dense.shape[0]),
                                       dense.T @ np.arange(dense.shape[0]), rtol=1e-6)
            batch = shardmat.Batch.from_scipy([given, given], dtype="float64")
            np.testing.assert_allclose(batch @ np.tile(x, 2), np.tile(dense @ x, 2), rtol=1e-6)
            np.testing.assert_array_equal(given.data, before)
            self.assertFalse(given.has_canonical_format)

    def test_many_of_one(self):
        for kind, count in ((np.uint8, 300), (np.int16, 40000), (bool, 5)):
            zeros = np.zeros(count, np.int32)
            given = sp.coo_matrix((np.ones(count, kind), (zeros, zeros)), shape=(1, 1))
            self.assertEqual((shardmat.Matrix.from_scipy(given) @ np.ones(1))[0], count)
            self.assertEqual((shardmat.Matrix.from_triplets(zeros, zeros, np.ones(count, kind), (1, 1), dtype="float64")
                              @ np.ones(1))[0], count)

    def test_new_values(self):
        for given, dense in self.cases():
            if given.format == "coo":
                continue
            m = shardmat.Matrix.from_scipy(given, updatable=True)
            turned, x = m.T, np.random.default_rng(2).random(dense.shape[1])
            rows = given.tocsr().copy()
            m.update_values(rows.data[::-1].copy())  # all of them, of a small type
            arrays = rows.data[::-1].astype(float), rows.indices.copy(), rows.indptr.copy()  # sum_duplicates() changes them
            other = sp.csr_matrix(arrays, shape=rows.shape)
            np.testing.assert_allclose(m @ x, other @ x, rtol=1e-6)
            np.testing.assert_allclose(turned @ np.arange(dense.shape[0]), other.T @ np.arange(dense.shape[0]), rtol=1e-6)
            other.sum_duplicates()
            m.update_values(2 * other.data)
            np.testing.assert_allclose(m @ x, 2 * (other @ x), rtol=1e-6)
            with self.assertRaises(shardmat.UsageError):
                m.update_values(other.data[1:])

    def test_vectors_and_graphs(self):
        a = (tridiagonal(60) + tridiagonal(60).T).tocsr()
        m = shardmat.Matrix.from_scipy(a)
        for kind in (np.int8, np.uint8, np.int16, np.uint16, bool, np.float16, np.longdouble):
            x = (100 * np.random.default_rng(3).random((60, 2))).astype(kind)
            np.testing.assert_allclose(m @ x, a @ x.astype(float))
            np.testing.assert_allclose(m.solve(x[:, 0], x[:, 1], rtol=1e-12), spl.spsolve(a.tocsc(), x[:, 0].astype(float)))
        edges = [0, 0, 0, 1, 1, 2, 2], [1, 1, 2, 0, 2, 0, 0]
        links, wide = (sp.coo_matrix((np.full(7, 100, kind), edges), shape=(3, 3)) for kind in (np.int8, float))
        np.testing.assert_array_equal(shardmat.pagerank(links), shardmat.pagerank(wide))
        refused(ValueError, "real numbers", lambda: shardmat.pagerank(links, restarts=np.ones(3) * 1j))


class Factors(unittest.TestCase):
    """alpha = 0 leaves x unread and beta = 0 leaves y unread, as in BLAS."""

    def test_nan_is_not_multiplied_by_zero(self):
        a = tridiagonal(40)
        m = shardmat.Matrix.from_scipy(a)
        for columns in (1, 4):
            shape = (40,) if columns == 1 else (40, columns)
            p, y = m.product(columns), np.random.default_rng(4).random(shape)
            for beta, expected in ((2.0, 2 * y), (0.0, 0 * y)):
                out = y.copy()
                p.multiply(np.full(shape, np.nan), out, alpha=0.0, beta=beta)
                np.testing.assert_array_equal(out, expected)
            out = np.full(shape, np.nan)
            p.multiply(y, out, alpha=1.0, beta=0.0)
            np.testing.assert_allclose(out, a @ y)

    def test_out_in_fortran_order(self):
        a = tridiagonal(40)
        p, rng = shardmat.Matrix.from_scipy(a).product(3), np.random.default_rng(6)
        x, before = rng.random((40, 3)), np.asfortranarray(rng.random((40, 3)))
        for given in (x, np.asfortranarray(x)):
            for beta in (0.0, 0.5):
                out = before.copy(order="F")
                self.assertIs(p.multiply(given, out, beta=beta), out)
                np.testing.assert_allclose(out, a @ x + beta * before)

    def test_of_batches(self):
        a = [tridiagonal(5), tridiagonal(3)]
        batch, y = shardmat.Batch.from_scipy(a), np.random.default_rng(5).random((8, 2))
        out = y.copy()
        batch.multiply(np.full((8, 2), np.nan), out, alpha=0.0, beta=3.0)
        np.testing.assert_allclose(out, 3 * y, rtol=1e-6)


class Values(unittest.TestCase):
    def test_new_values_and_the_transpose(self):
        a = tridiagonal(50)
        m = shardmat.Matrix.from_scipy(a, updatable=True)
        x = np.random.default_rng(7).random(50)
        np.testing.assert_allclose(m.T @ x, a.T @ x)
        a.data *= np.arange(1, a.nnz + 1)
        m.update_values(a.data)
        np.testing.assert_allclose(m @ x, a @ x)
        np.testing.assert_allclose(m.T @ x, a.T @ x)
        m.update_values(PlainDlpack(np.ascontiguousarray(a.data[::-1])))
        with self.assertRaises(shardmat.UsageError):
            m.update_values([1.0])
        fixed = shardmat.Matrix.from_scipy(a)
        for change in (lambda: fixed.update_values(a.data), lambda: fixed.zero_rows_columns([0])):
            with self.assertRaisesRegex(shardmat.UsageError, "without room for new values.*Python: updatable=True; C"):
                change()

    def test_new_values_in_the_order_given(self):
        half = sp.random(50, 50, 0.2, random_state=5).tocsr()
        product = (half @ half).tocsr()
        self.assertFalse(product.has_sorted_indices)
        x = np.random.default_rng(6).random(50)
        for given in (product, sp.csr_array(product)):
            m = shardmat.Matrix.from_scipy(given, updatable=True)
            np.testing.assert_allclose(m.T @ x, product.T @ x)
            changed = product.copy()
            changed.data *= np.arange(1, product.nnz + 1)
            m.update_values(changed.data)
            np.testing.assert_allclose(m @ x, changed @ x)
            np.testing.assert_allclose(m.T @ x, changed.T @ x)
        self.assertFalse(product.has_sorted_indices)

    def test_zero_rows_columns(self):
        a = tridiagonal(50)
        m = shardmat.Matrix.from_scipy(a, updatable=True)
        x = np.random.default_rng(8).random(50)
        b = a @ x
        m.zero_rows_columns([0, 17, 17, 49], 3, x, b)
        dense = a.toarray()
        dense[[0, 17, 49]] = 0
        dense[:, [0, 17, 49]] = 0
        dense[[0, 17, 49], [0, 17, 49]] = 3
        np.testing.assert_allclose(m @ np.eye(50), dense)
        np.testing.assert_allclose(b, dense @ x, atol=1e-14)
        with self.assertRaisesRegex(shardmat.UsageError, "row 50"):
            m.zero_rows_columns([50])
        hollow = shardmat.Matrix.from_scipy(sp.csr_matrix(([1.0], ([0], [1])), shape=(2, 2)), updatable=True)
        with self.assertRaisesRegex(shardmat.InputError, "row 0 stores no entry on its diagonal"):
            hollow.zero_rows_columns([0])
        hollow.zero_rows_columns([0], 0)
        np.testing.assert_array_equal(hollow @ np.ones(2), [0, 0])


class Batches(unittest.TestCase):
    def test_batches(self):
        matrices = [sp.random(3 + i % 5, 2 + i % 3, 0.5, random_state=i).tocsr() for i in range(40)]
        for dtype in (np.float32, np.float64):
            batch = shardmat.Batch.from_scipy(matrices, dtype=dtype)
            x = np.random.default_rng(12).random((batch.shape[1], 4)).astype(dtype)
            whole = sp.block_diag(matrices).tocsr()
            np.testing.assert_allclose(batch @ x, whole @ x, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(batch @ x[:, 0], whole @ x[:, 0], rtol=1e-5, atol=1e-6)
            parts = np.split(x, np.cumsum([m.shape[1] for m in matrices])[:-1])
            for y, matrix, part in zip(batch @ parts, matrices, parts):
                np.testing.assert_allclose(y, matrix @ part, rtol=1e-5, atol=1e-6)
        self.assertEqual(batch.info()["matrices"], 40)
        with self.assertRaisesRegex(ValueError, "X of matrix 0"):
            batch @ ([np.ones(99)] * 40)
        refused(ValueError, "real numbers", lambda: batch @ (1j * x))
        refused(ValueError, "real numbers", lambda: shardmat.Batch.from_scipy([sp.csr_matrix([[1j]])]))
        refused(ValueError, "too large for float32", lambda: shardmat.Batch.from_scipy([sp.csr_matrix([[1e300]])], dtype="float32"))
        batch.close()
        refused(ValueError, "closed", lambda: batch @ x)


if __name__ == "__main__":
    unittest.main()
