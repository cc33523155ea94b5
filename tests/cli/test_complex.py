"""Complex matrices and vectors as real ones, and solutions back: against SciPy's complex products and solves."""

import json
import unittest

import numpy as np
import scipy.io
import scipy.sparse as sp
import scipy.sparse.linalg as spl

from support import INPUT, USAGE, CliTest


def helmholtz(n, k=0.9, absorption=0.3):
    """-u'' - k² u with absorption, on an n × n grid: complex symmetric, indefinite."""
    line = sp.diags([-1.0, 2, -1], [-1, 0, 1], shape=(n, n))
    laplace = sp.kronsum(line, line)
    return (laplace - k**2 * (1 + 1j * absorption) * sp.eye(n * n)).tocsr()


def unsymmetric(rows, cols, seed=3):
    rng = np.random.default_rng(seed)
    a = sp.random(rows, cols, 0.2, random_state=seed, format="csr").astype(complex)
    a.data += 1j * rng.standard_normal(a.nnz)
    a.data[::5] = a.data[::5].real  # a part may be zero
    return a


def numbers(n, columns=None, seed=4):
    rng = np.random.default_rng(seed)
    shape = n if columns is None else (n, columns)
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


class Complex(CliTest):
    def real_equivalent(self, source, matrix):
        """Converts, and compares every value."""
        self.succeed("convert", "--complex", "as-real", source, "real.npz", "--force")
        real = sp.load_npz(self.path("real.npz"))
        expected = np.kron(matrix.toarray().real, np.eye(2)) + np.kron(matrix.toarray().imag, [[0, -1], [1, 0]])
        np.testing.assert_array_equal(real.toarray(), expected)
        return real

    def test_every_format_and_symmetry(self):
        a = unsymmetric(17, 23)
        stored = sp.coo_matrix(a).nnz
        for write in (sp.csr_matrix, sp.csc_matrix, sp.coo_matrix):
            sp.save_npz(self.path("a.npz"), write(a))
            self.assertEqual(self.real_equivalent("a.npz", a).nnz, 4 * stored)
        sp.save_npz(self.path("a.npz"), a.astype(np.complex64))
        self.real_equivalent("a.npz", a.astype(np.complex64))
        scipy.io.mmwrite(self.path("a.mtx"), a, precision=17)
        self.real_equivalent("a.mtx", a)
        for compressed in (False, True):
            scipy.io.savemat(self.path("a.mat"), {"A": a.tocsc(), "b": np.ones(3)}, do_compression=compressed)
            self.real_equivalent("a.mat", a)
            self.real_equivalent("a.mat:A", a)
        square = unsymmetric(20, 20)
        for name, full in (("symmetric", square + square.T), ("hermitian", square + square.getH()), ("skew-symmetric", square - square.T)):
            full = full.tolil()
            if name == "skew-symmetric":
                full.setdiag(0)
            full = full.tocsr()
            lower = sp.tril(full).tocoo()
            lines = [f"{i + 1} {j + 1} {v.real!r} {v.imag!r}\n" for i, j, v in zip(lower.row, lower.col, lower.data)]
            self.write("s.mtx", f"%%MatrixMarket matrix coordinate complex {name}\n20 20 {lower.nnz}\n" + "".join(lines))
            real = self.real_equivalent("s.mtx", full)
            if name == "hermitian":
                self.assertEqual(abs(real - real.T).max(), 0)

    def test_duplicates_are_summed(self):
        self.write("d.mtx", "%%MatrixMarket matrix coordinate complex general\n2 2 3\n1 2 1 2\n1 2 10 -20\n2 1 0 5\n")
        self.real_equivalent("d.mtx", sp.csr_matrix([[0, 11 - 18j], [5j, 0]]))

    def test_products_and_vectors(self):
        a, x = unsymmetric(40, 30), numbers(30)
        sp.save_npz(self.path("a.npz"), a)
        self.succeed("convert", "--complex", "as-real", "a.npz", "a.h5")
        for name in ("x.npy", "x.mtx"):
            if name == "x.npy":
                np.save(self.path(name), x)
            else:
                scipy.io.mmwrite(self.path(name), x[:, None], precision=17)
            self.succeed("convert", "--complex", "as-real", name, "x_real.npy", "--force")
            np.testing.assert_array_equal(np.load(self.path("x_real.npy")), x.view(float))
        for ranks in (1, 2, 3):
            self.succeed("multiply", "a.h5", "--x", "x_real.npy", "--output", "y_real.npy", "--force", ranks=ranks)
            for name in ("y.npy", "y.mtx"):
                self.succeed("convert", "--complex", "from-real", "y_real.npy", name, "--force")
            np.testing.assert_allclose(np.load(self.path("y.npy")), a @ x, atol=1e-13)
            np.testing.assert_allclose(scipy.io.mmread(str(self.path("y.mtx")))[:, 0], a @ x, atol=1e-13)

    def test_several_columns(self):
        x = numbers(30, 3)
        for order in ("C", "F"):
            np.save(self.path("x.npy"), np.asarray(x, order=order))
            self.succeed("convert", "--complex", "as-real", "x.npy", "r.npy", "--force")
            real = np.load(self.path("r.npy"))
            np.testing.assert_array_equal(real[::2] + 1j * real[1::2], x)
            self.succeed("convert", "--complex", "from-real", "r.npy", "back.npy", "--force")
            np.testing.assert_array_equal(np.load(self.path("back.npy")), x)

    def test_arrays_of_which_half_is_stored(self):
        rng = np.random.default_rng(6)
        a = rng.standard_normal((5, 5)) + 1j * rng.standard_normal((5, 5))
        for name, full in (("hermitian", a + a.conj().T), ("symmetric", a + a.T), ("skew-symmetric", a - a.T)):
            lines = [f"{full[i, j].real!r} {full[i, j].imag!r}\n" for j in range(5)
                     for i in range(j + (name == "skew-symmetric"), 5)]
            self.write("h.mtx", f"%%MatrixMarket matrix array complex {name}\n5 5\n" + "".join(lines))
            np.testing.assert_array_equal(scipy.io.mmread(str(self.path("h.mtx"))), full)
            self.succeed("convert", "--complex", "as-real", "h.mtx", "r.npy", "--force")
            real = np.load(self.path("r.npy"))
            np.testing.assert_array_equal(real[::2] + 1j * real[1::2], full)
            self.succeed("convert", "--complex", "from-real", "r.npy", "back.mtx", "--force")
            np.testing.assert_array_equal(scipy.io.mmread(str(self.path("back.mtx"))), full)

    def test_helmholtz(self):
        a = helmholtz(20)
        b = numbers(a.shape[0])
        expected = spl.spsolve(a.tocsc(), b)
        sp.save_npz(self.path("waves.npz"), a)
        np.save(self.path("b.npy"), b)
        self.succeed("convert", "--complex", "as-real", "waves.npz", "waves.h5")
        self.succeed("convert", "--complex", "as-real", "b.npy", "b_real.npy")
        for ranks in (1, 2, 3):
            for preconditioner in ("none", "block_jacobi"):
                self.succeed("solve", "waves.h5", "--b", "b_real.npy", "--solver", "gmres", "--restart", 100, "--rtol", "1e-10",
                             "--preconditioner", preconditioner, "--output", "x_real.npy", "--json", "report.json", "--force",
                             ranks=ranks)
                self.succeed("convert", "--complex", "from-real", "x_real.npy", "x.npy", "--force")
                np.testing.assert_allclose(np.load(self.path("x.npy")), expected, atol=1e-7 * abs(expected).max())
        self.assertIn("converged", json.dumps(json.loads(self.path("report.json").read_text())))
        self.assertIn("2", self.succeed("info", "waves.h5").out)

    def test_what_is_refused(self):
        a = unsymmetric(4, 4)
        sp.save_npz(self.path("c.npz"), a)
        sp.save_npz(self.path("r.npz"), abs(a))
        scipy.io.mmwrite(self.path("c.mtx"), a)
        scipy.io.savemat(self.path("c.mat"), {"A": a})
        np.save(self.path("c.npy"), numbers(4))
        np.save(self.path("r.npy"), np.arange(5.0))
        for name in ("c.npz", "c.mtx", "c.mat"):
            for command in ("multiply", "info", "solve"):
                self.fail_with(INPUT, command, name, says=["shardmat convert --complex as-real"])
        self.fail_with(INPUT, "multiply", "poisson:n=2", "--x", "c.npy", says=["shardmat convert --complex as-real"])
        self.fail_with(INPUT, "convert", "--complex", "as-real", "r.npz", "out.h5", says=["its values are real"])
        self.fail_with(INPUT, "convert", "--complex", "as-real", "r.npy", "out.npy", says=["its values are real"])
        self.fail_with(INPUT, "convert", "--complex", "from-real", "r.npy", "out.npy", says=["an even number"])
        self.fail_with(USAGE, "convert", "--complex", "from-real", "r.npy", "out.txt", says=[".npy and .mtx"])
        self.fail_with(USAGE, "convert", "--complex", "maybe", "c.npz", "out.h5", says=["as-real"])


if __name__ == "__main__":
    unittest.main()
