"""Octave writes matrices and vectors at random, and the product y = A x; Shardmat multiplies them. Then Octave reads what Shardmat
wrote."""

import os
import pathlib
import sys
import unittest

import numpy as np
import scipy.io
import scipy.sparse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from support import CliTest, run  # noqa: E402

OCTAVE = os.environ["TEST_OCTAVE"]


class Octave(CliTest):
    def octave(self, script):
        self.write("script.m", script)
        result = run([OCTAVE, "--no-init-file", "--no-gui", "--quiet", "script.m"], self.directory)
        self.assertEqual(result.code, 0, result)
        return result.out

    def test_products_agree(self):
        self.octave("""
            rand ("seed", 7);
            A = sprand (120, 90, 0.06) - 2 * sprand (120, 90, 0.02);  x = rand (90, 1) - 0.5;  y = A * x;
            S = sprandsym (60, 0.1) + 20 * speye (60);  b = single (rand (60, 1));  u = S \\ double (b);
            save ("-v6", "o6.mat", "A", "x", "y", "S", "b", "u");
            save ("-v7", "o7.mat", "A", "x", "y", "S", "b", "u");
            save ("-hdf5", "o.h5", "A", "x", "y", "S", "b", "u");
            save ("-v6", "expected.mat", "A", "y", "u");
            save ("text.mat", "A");
            """)
        expected = scipy.io.loadmat(self.path("expected.mat"))
        for name in ("o6.mat", "o7.mat", "o.h5"):
            with self.subTest(name):
                self.succeed("multiply", f"{name}:A", "--x", f"{name}:x", "--output", "y.npy", "--iterations", 0)
                np.testing.assert_allclose(np.load(self.path("y.npy")), expected["y"][:, 0], rtol=1e-13, atol=1e-14)
                self.succeed("convert", f"{name}:A", "a.npz")
                found = scipy.sparse.load_npz(self.path("a.npz"))
                self.assertEqual((found != expected["A"]).nnz, 0)
                self.assertEqual(found.nnz, expected["A"].nnz)
                self.succeed("solve", f"{name}:S", "--b", f"{name}:b", "--rtol", "1e-12", "--output", "u.npy")
                np.testing.assert_allclose(np.load(self.path("u.npy")), expected["u"][:, 0], rtol=1e-9, atol=1e-12)
        self.fail_with(3, "convert", "text.mat:A", "o.npz", says=["text.mat", "Octave's own format", "save -v7"])

        self.succeed("convert", "o7.mat:A", "ours.mat")
        self.succeed("multiply", "o7.mat:A", "--x", "o7.mat:x", "--output", "product.mat", "--iterations", 0)
        said = self.octave("""
            old = load ("o7.mat");  ours = load ("ours.mat");  product = load ("product.mat").product;
            printf ("%d %d %d ", issparse (ours.A), isequal (ours.A, old.A), nnz (ours.A) == nnz (old.A));
            printf ("%d %g\\n", isequal (size (product), size (old.y)), norm (product - old.y));
            """).split()
        self.assertEqual(said[:4], ["1", "1", "1", "1"])
        self.assertLess(float(said[4]), 1e-13)

    def test_edges(self):
        self.succeed("convert", "poisson7:n=3", "p.mat")
        self.write("empty.mtx", "%%MatrixMarket matrix coordinate real general\n4 2 0\n")
        self.succeed("convert", "empty.mtx", "empty.mat")
        said = self.octave("""
            p = load ("p.mat").A;  e = load ("empty.mat").A;
            printf ("%d %d %d %d %d\\n", size (p, 1), nnz (p), size (e, 1), size (e, 2), nnz (e));
            """).split()
        self.assertEqual(said, ["27", "135", "4", "2", "0"])


if __name__ == "__main__":
    unittest.main()
