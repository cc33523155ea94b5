"""A dolfinx program with the plug-in, by options only. Ends with "skipped" where dolfinx is not installed."""

import importlib.util
import os
import re
import sys
import unittest

from runs import run

ELASTICITY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "elasticity.py")


class Elasticity(unittest.TestCase):
    def solved(self, ranks, *options, plugin=True):
        done = run([sys.executable, ELASTICITY], ranks, *options, plugin=plugin)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
        found = re.search(r"type (\w+) iterations (\d+) reason (\d+) norm (\S+)", done.stdout)
        return found[1], int(found[2]), int(found[3]), float(found[4])

    def test_options_only(self):
        for ranks in (1, 2):
            for preconditioner in ("jacobi", "gamg"):
                with self.subTest(ranks=ranks, preconditioner=preconditioner):
                    _, iterations, reason, norm = self.solved(ranks, "-pc_type", preconditioner, plugin=False)
                    ours = self.solved(ranks, "-pc_type", preconditioner, "-mat_type", "shardmat")
                    self.assertEqual(ours[0], "seqaijshardmat" if ranks == 1 else "mpiaijshardmat")
                    varies = ranks > 1 and preconditioner == "gamg"  # by itself: 72 to 77 iterations in eight runs
                    self.assertLessEqual(abs(ours[1] - iterations), 0.2 * iterations if varies else 1)
                    self.assertEqual(ours[2], reason)
                    self.assertAlmostEqual(ours[3] / norm, 1, places=5)
            with self.subTest(ranks=ranks, solver="whole"):
                plain = self.solved(ranks, "-pc_type", "pbjacobi", plugin=False)
                ours = self.solved(ranks, "-pc_type", "pbjacobi", "-ksp_type", "shardmat")
                self.assertLessEqual(abs(ours[1] - plain[1]), 1)
                self.assertAlmostEqual(ours[3] / plain[3], 1, places=5)


if __name__ == "__main__":
    if importlib.util.find_spec("dolfinx") is None:
        print("skipped: this Python has no dolfinx (package python3-dolfinx)")
    else:
        unittest.main()
