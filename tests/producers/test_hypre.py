"""hypre itself reads what Shardmat writes for it, a file for each rank, and Shardmat reads what hypre writes then."""

import os
import pathlib
import sys
import unittest

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from support import CliTest, run  # noqa: E402

READER = os.environ["TEST_HYPRE_READER"]


class Hypre(CliTest):
    def test_products_agree(self):
        random = np.random.default_rng(1)
        for shape, files in (((40, 40), 1), ((31, 17), 3)):
            a = sp.random(*shape, 0.3, "csr", random_state=1)
            square = sp.random(shape[1], shape[1], 0.5, "csr", random_state=2)
            x = random.standard_normal(shape[1])
            sp.save_npz(self.path("a.npz"), a)
            sp.save_npz(self.path("s.npz"), square)
            np.save(self.path("x.npy"), x)
            name = f"f{files}"
            self.succeed("convert", "a.npz", f"{name}.A.00000", "--files", files)
            self.succeed("multiply", "s.npz", "--x", "x.npy", "--output", f"{name}.x.00000", "--files", files)
            result = run(["mpirun", "-n", files, READER, f"{name}.A", f"{name}.x", f"{name}.y"], self.directory)
            self.assertEqual(result.code, 0, result)
            self.assertTrue(self.path(f"{name}.y.{files - 1:05d}").exists())
            # y through our reader: y' = I y
            sp.save_npz(self.path("i.npz"), sp.eye(shape[0], format="csr"))
            self.succeed("multiply", "i.npz", "--x", f"{name}.y", "--output", f"{name}.npy")
            np.testing.assert_allclose(np.load(self.path(f"{name}.npy")), a @ (square @ x), rtol=1e-12, atol=1e-13)


if __name__ == "__main__":
    unittest.main()
