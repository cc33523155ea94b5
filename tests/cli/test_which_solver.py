"""The page "Which solver for my problem": every line of it gives an answer, and the options that it names exist."""

import json
import re
import shutil
import unittest

import numpy as np
import scipy.sparse as sp

from support import DATA, ROOT, CliTest

PAGE = (ROOT / "tools" / "which-solver.md").read_text()
LINES = re.findall(r"`((?:mpirun -n \d|shardmat solve) [^`]*)` \|$", PAGE, re.M)
BEAM = "elasticity:n=8,uniform,clamp=0.1"


class Page(CliTest):
    def setUp(self):
        super().setUp()
        shutil.copy(DATA / "box.h5", self.path("box.h5"))
        self.succeed("convert", BEAM, "K.npz")
        stiffness = sp.load_npz(self.path("K.npz")).tocsr()
        points = np.stack(np.meshgrid(*[np.arange(8.0)] * 3, indexing="ij"), -1).reshape(-1, 3)[:, ::-1]
        np.save(self.path("xyz.npy"), points)
        x, y, z = points.T
        modes = np.zeros((512, 3, 6))
        modes[:, 0, 0] = modes[:, 1, 1] = modes[:, 2, 2] = 1
        modes[:, 0, 3], modes[:, 1, 3], modes[:, 1, 4] = -y, x, -z
        modes[:, 2, 4], modes[:, 2, 5], modes[:, 0, 5] = y, -x, z
        np.save(self.path("modes.npy"), modes.reshape(-1, 6))
        np.save(self.path("f.npy"), np.random.default_rng(1).standard_normal(1536))
        sp.save_npz(self.path("S.npz"), sp.csr_matrix(stiffness - 1e-3 * sp.eye(1536)))
        penalty = stiffness.tolil()
        penalty[7, 7] = 1e30
        sp.save_npz(self.path("P.npz"), penalty.tocsr())

    def test_every_line_gives_an_answer(self):
        self.assertGreaterEqual(len(LINES), 14)
        for line in LINES:
            with self.subTest(line):
                words = line.split()
                ranks = int(words[2]) if words[0] == "mpirun" else 0
                self.succeed(*words[words.index("solve"):], "--json", "report.json", ranks=ranks)
                report = json.loads(self.path("report.json").read_text())
                self.assertTrue(report["converged"])

    def test_options_exist(self):
        text = self.succeed("solve", "--help-all").out
        for option in set(re.findall(r"(?<![\w-])(--[a-z][a-z-]+)", PAGE)):
            self.assertRegex(text, rf"(?<![\w-]){option}(?![\w-])")

    def test_is_short(self):
        self.assertLessEqual(len(PAGE.splitlines()), 60)


if __name__ == "__main__":
    unittest.main()
