"""The small picture of a matrix: GET /v1/matrices/NAME/spy, compared with SciPy."""

import unittest

import numpy as np
import scipy.sparse as sp

from support import BACKEND, write_binsparse
from test_serve import ServiceTest

CELLS = 64


def counts_of(matrix):
    """Nonzeros of a matrix in each cell of a grid of at most 64 × 64."""
    height, width = (min(CELLS, size) for size in matrix.shape)
    entries = matrix.tocoo()
    counts = np.zeros((height, width), int)
    np.add.at(counts, (entries.row.astype(int) * height // matrix.shape[0], entries.col.astype(int) * width // matrix.shape[1]), 1)
    return counts


def scattered(rows, cols, nnz, seed):
    """Entries that are denser in some places than in others."""
    random = np.random.default_rng(seed)
    at = (random.beta(0.5, 2, nnz) * rows).astype(int) * cols + (random.beta(2, 1, nnz) * cols).astype(int)
    at = np.unique(at)
    return sp.csr_matrix((random.uniform(1, 2, at.size), (at // cols, at % cols)), (rows, cols))


class Spy(ServiceTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.others = {"wide": scattered(301, 1007, 20_000, 1), "tall": scattered(5003, 7, 3000, 2), "tiny": scattered(3, 5, 9, 3)}
        for name, matrix in cls.others.items():
            write_binsparse(cls.library / f"{name}.h5", matrix)

    def spy(self, service, name):
        answer = service.get(f"/v1/matrices/{name}/spy")
        self.assertEqual(answer.status, 200, answer)
        return answer.json

    def assert_counts(self, service, name, matrix):
        counts = counts_of(matrix)
        found = self.spy(service, name)
        self.assertEqual((found["rows"], found["cols"], found["nnz"]), (*matrix.shape, matrix.nnz))
        self.assertEqual((found["height"], found["width"]), counts.shape)
        np.testing.assert_array_equal(found["counts"], counts)
        self.assertEqual(self.spy(service, name), found)

    def test_counts_are_those_of_scipy(self):
        for ranks in (1, 2, 3) if BACKEND == "host" else (1, 2):
            with self.subTest(ranks=ranks):
                service = self.start("--ranks", ranks, state=f"state{ranks}")
                self.loaded(service)
                self.assert_counts(service, "bar", self.matrix)
                self.loaded(service, "solvable", solvable=True, type="f32")
                self.assert_counts(service, "solvable", self.matrix)
                self.loaded(service, "new", updatable=True)
                self.assert_counts(service, "new", self.matrix)
                for name, matrix in self.others.items():
                    self.loaded(service, name, f"{name}.h5")
                    self.assert_counts(service, name, matrix)

    def test_reordered_rows_count_as_in_the_source(self):
        ways = {"rcm": ("--reorder", "rcm"), "global": ("--sort", "global", "--parts", 3), "both": ("--reorder", "rcm", "--sort", "local")}
        for name, options in ways.items():
            self.succeed("partition", self.library / "elasticity_bar.mtx.gz", self.library / f"{name}.h5", "--force", *options)
        for ranks in (1, 3):
            with self.subTest(ranks=ranks):
                service = self.start("--ranks", ranks, state=f"state{ranks}")
                for name in ways:
                    for sort in ("none", "local"):
                        self.loaded(service, f"{name}-{sort}", f"{name}.h5", sort=sort)
                        self.assert_counts(service, f"{name}-{sort}", self.matrix)

    def test_who_gets_none(self):
        service = self.start()
        self.assert_problem(service.get("/v1/matrices/none/spy"), 404, "no_matrix")
        self.assertEqual(service.load("bad", "there-is-none.h5").status, 422)
        self.assert_problem(service.get("/v1/matrices/bad/spy"), 409, "not_loaded")
        self.loaded(service)
        self.spy(service, "bar")
        self.loaded(service, "wide", "wide.h5")
        self.assertEqual(service.ask("POST", "/v1/matrices/bar/unload").status, 200)
        self.loaded(service, "bar", "tall.h5")  # another matrix with the name
        self.assert_counts(service, "bar", self.others["tall"])


if __name__ == "__main__":
    unittest.main()
