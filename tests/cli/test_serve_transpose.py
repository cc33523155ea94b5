"""Products with the transpose of a matrix of the service: y = alpha·Aᵀ·x + beta·y, from the rows that are stored once."""

import os
import signal
import unittest

import numpy as np
import scipy.sparse as sp

from service import at_once
from support import BACKEND, OK, read_vector, write_binsparse, write_vector
from test_serve import NAMES
from test_serve_shared import Shared
from test_serve_vectors import VectorsTest

ALIKE = ("--reproducible", "--same-bits", "--overlap", "--no-measure")


def wide(rows=300, cols=470, seed=1):
    """Rows of unequal length, some of them empty; some columns have no entry."""
    numbers = np.random.default_rng(seed)
    entries = 4000
    a = sp.coo_matrix((numbers.uniform(-1, 1, entries), (numbers.integers(0, rows, entries) // 2 * 2, numbers.integers(0, cols - 9, entries))),
                      (rows, cols)).tocsr()
    a.sum_duplicates()
    return a


class Transposes(VectorsTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.a = wide(cols=470 if BACKEND == "host" else 300)  # what GPUs transpose is solvable, so square
        write_binsparse(cls.library / "wide.bsp.h5", cls.a)

    def loaded(self, service, *names, **more):
        return super().loaded(service, *names, **more, **({} if BACKEND == "host" else {"solvable": True}))  # GPUs multiply with its rows

    def of_rows(self, seed, type="f64", columns=1, of_y=False):
        return np.random.default_rng(seed).uniform(-1, 1, (columns, self.a.shape[1 if of_y else 0])).astype(NAMES[type])

    def of_command(self, x, ranks, type, source, y=None, alpha=1, beta=0):
        """alpha·Aᵀ·x + beta·y by the command."""
        write_vector(self.path("x.npy"), x)
        options = ["--alpha", alpha, "--beta", beta]
        if y is not None:
            write_vector(self.path("y0.npy"), y)
            options += ["--y0", "y0.npy"]
        self.succeed("multiply", self.library / source, "--transpose", "--x", "x.npy", "--output", "y.npy", "--force", "--type", type,
                     "--iterations", 0, "--backend", BACKEND, *options, *ALIKE, ranks=ranks)
        return read_vector(self.path("y.npy"))

    def test_values_and_bits(self):
        for ranks in (1, 2, 3):
            service = self.start("--ranks", ranks)
            for type in ("f64", "f32"):
                with self.subTest(ranks=ranks, type=type):
                    self.loaded(service, "m", "wide.bsp.h5", type=type)
                    x, y = self.of_rows(1, type, 5), self.of_rows(2, type, 5, of_y=True)
                    single = [self.multiply(service, "transpose=1", column.tobytes(), "m") for column in x]
                    self.assertEqual(single[0].headers["Shardmat-Shape"], str(self.a.shape[1]))
                    self.assert_bits(single[0].body, self.of_command(x[0], ranks, type, "wide.bsp.h5").tobytes(), type)
                    exact = self.a.T @ x[0].astype(np.float64)
                    bound = 300 * np.finfo(NAMES[type]).eps * (abs(self.a.T) @ abs(x[0].astype(np.float64)))
                    self.assertTrue((abs(self.y_of(single[0], type) - exact) <= bound).all())
                    several = self.multiply(service, "k=5&transpose=1", x.tobytes(), "m")
                    self.assertEqual(several.body, b"".join(one.body for one in single))
                    self.assertEqual(several.headers["Shardmat-Batch"], "5/8")
                    scaled = self.multiply(service, "k=5&transpose=1&alpha=0.5&beta=-2", np.concatenate([x.ravel(), y.ravel()]).tobytes(), "m")
                    expected = NAMES[type](0.5) * np.frombuffer(several.body, NAMES[type]) - NAMES[type](2) * y.ravel()
                    np.testing.assert_allclose(np.frombuffer(scaled.body, NAMES[type]), expected, rtol=0, atol=8 * np.finfo(NAMES[type]).eps)
                    nan = np.full_like(x[0], np.nan)
                    self.assertEqual(self.multiply(service, "transpose=1&alpha=0", nan.tobytes(), "m").body, bytes(y[0].nbytes))
                    self.assertTrue(np.isnan(self.y_of(self.multiply(service, "transpose=1", nan.tobytes(), "m"), type)).any())
                    plain = self.multiply(service, "transpose=0", y[0].tobytes(), "m")
                    self.assertEqual(plain.body, self.multiply(service, "", y[0].tobytes(), "m").body)
                    self.assertEqual(service.ask("POST", "/v1/matrices/m/unload").status, 200)
            self.assertEqual(service.terminate(), OK, service.report())

    def test_bits_with_alpha_and_beta(self):
        for ranks in (1, 2, 3):
            service = self.start("--ranks", ranks)
            for type in ("f64", "f32"):
                self.loaded(service, "m", "wide.bsp.h5", type=type)
                x, y = self.of_rows(1, type, 3), self.of_rows(2, type, 3, of_y=True)
                for alpha, beta in ((0.3, 0), (0.3, 0.3)):
                    with self.subTest(ranks=ranks, type=type, alpha=alpha, beta=beta):
                        factors = f"transpose=1&alpha={alpha}&beta={beta}"
                        expected = [self.of_command(x[j], ranks, type, "wide.bsp.h5", y[j] if beta else None, alpha, beta).tobytes() for j in range(3)]
                        bodies = [x[j].tobytes() + (y[j].tobytes() if beta else b"") for j in range(3)]
                        answers = [self.multiply(service, factors, body, "m").body for body in bodies]
                        for j in range(3):
                            self.assert_bits(answers[j], expected[j], type)
                        together = x.tobytes() + (y.tobytes() if beta else b"")
                        self.assertEqual(self.multiply(service, f"k=3&{factors}", together, "m").body, b"".join(answers))
                        block_x, block_y = self.written(service, x, matrix="m", layout="rows", columns=3), self.written(service, y, matrix="m", columns=3)
                        self.multiply(service, f"{factors}&x={block_x}&y={block_y}", name="m", status=204)
                        self.assertEqual(self.get(service, block_y), b"".join(answers))
                        at_rows, at_columns = self.written(service, x[0], matrix="m", layout="rows"), self.written(service, y[0], matrix="m")
                        self.multiply(service, f"{factors}&x={at_rows}&y={at_columns}", name="m", status=204)
                        self.assertEqual(self.get(service, at_columns), answers[0])
                        for id in (block_x, block_y, at_rows, at_columns):
                            self.assertEqual(service.ask("DELETE", f"/v1/vectors/{id}").status, 204)
                nan = np.full_like(x[0], np.nan)
                self.assertEqual(self.multiply(service, "transpose=1&alpha=0&beta=2", np.concatenate([nan, y[0]]).tobytes(), "m").body, (2 * y[0]).tobytes())
                self.assertEqual(service.ask("POST", "/v1/matrices/m/unload").status, 200)
            self.assertEqual(service.terminate(), OK, service.report())

    def test_vectors_that_stay_and_blocks(self):
        for ranks in (1, 2):
            with self.subTest(ranks=ranks):
                service = self.start("--ranks", ranks, state=f"state{ranks}")
                self.loaded(service, "m", "wide.bsp.h5")
                x, y = self.of_rows(1, columns=3), self.of_rows(2, columns=3, of_y=True)
                single = [self.multiply(service, "transpose=1", column.tobytes(), "m").body for column in x]
                at_rows = self.written(service, x[0], matrix="m", layout="rows")
                at_columns = self.make(service, matrix="m")
                self.multiply(service, f"transpose=1&x={at_rows}&y={at_columns}", name="m", status=204)
                self.assertEqual(self.get(service, at_columns), single[0])
                self.multiply(service, f"x={at_columns}&y={at_rows}", name="m", status=204)  # and back: A·Aᵀ·x
                self.assertEqual(self.get(service, at_rows), self.multiply(service, "", single[0], "m").body)
                block_x, block_y = self.written(service, x, matrix="m", layout="rows", columns=3), self.written(service, y, matrix="m", columns=3)
                self.multiply(service, f"transpose=1&x={block_x}&y={block_y}", name="m", status=204)
                self.assertEqual(self.get(service, block_y), b"".join(single))
                self.put(service, block_y, y)
                self.multiply(service, f"transpose=1&x={block_x}&y={block_y}&alpha=0&beta=2", name="m", status=204)
                self.assertEqual(self.get(service, block_y), (2 * y).tobytes())
                self.assertEqual(self.multiply(service, f"transpose=1&x={block_x}", name="m").body, b"".join(single))
                if self.a.shape[0] != self.a.shape[1]:
                    problem = self.multiply(service, f"transpose=1&x={at_columns}", name="m", status=422)
                    self.assert_problem(problem, 422, "wrong_length", "x of the transpose of m has 300")
                    problem = self.multiply(service, "transpose=1", y[0].tobytes(), "m", status=422)
                    self.assert_problem(problem, 422, "wrong_length", f"takes {x[0].nbytes}: x with 1 column of 300 numbers")
                self.assert_problem(self.multiply(service, "transpose=yes", name="m", status=400), 400, "malformed", "transpose must be 0 or 1")
                self.assertEqual(service.terminate(), OK, service.report())

    def test_beside_other_products_after_new_values_and_lost_ranks(self):
        service = self.start("--ranks", 2)
        self.loaded(service, "m", "wide.bsp.h5", updatable=True)
        x, y = self.of_rows(1, columns=8), self.of_rows(2, columns=8, of_y=True)
        expected = [(self.multiply(service, "", there.tobytes(), "m").body, self.multiply(service, "transpose=1", back.tobytes(), "m").body)
                    for back, there in zip(x, y)]
        wrong = []

        def client(number):
            connection = service.connection()
            for turn in range(20):
                which = (number + turn) % 8
                for query, body, right in (("", y, 0), ("transpose=1", x, 1)):
                    got = self.multiply(service, query, body[which].tobytes(), "m", connection)
                    if got.body != expected[which][right]:
                        wrong.append((number, turn, query))
            connection.close()

        at_once(8, client)
        self.assertEqual(wrong, [])
        values = np.random.default_rng(5).uniform(-1, 1, self.a.nnz)
        answer = service.ask("PUT", "/v1/matrices/m/values", values.tobytes(), Content_Type="application/octet-stream")
        self.assertEqual(answer.status, 200, answer)
        changed = sp.csr_matrix((values, self.a.indices, self.a.indptr), self.a.shape)
        new = self.multiply(service, "transpose=1", x[0].tobytes(), "m").body
        np.testing.assert_allclose(np.frombuffer(new), changed.T @ x[0], rtol=0, atol=1e-13)
        os.kill(service.workers()[0], signal.SIGKILL)
        service.wait_for("the restart", lambda: service.get("/v1/ranks").json["restarts"] == 1)
        service.wait_until_ready()
        self.assert_problem(self.multiply(service, "transpose=1", x[0].tobytes(), "m", status=410), 410, "values_lost")
        answer = service.ask("PUT", "/v1/matrices/m/values", values.tobytes(), Content_Type="application/octet-stream")
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(self.multiply(service, "transpose=1", x[0].tobytes(), "m").body, new)

    def test_memory_that_is_counted_and_shared(self):
        service = self.start("--ranks", 2)
        before = self.loaded(service, "m", "wide.bsp.h5")["ranks"]
        shared = Shared(service, 1 << 20)
        self.addCleanup(shared.close)
        x = self.of_rows(1, columns=2)
        shared.put(4096, x)
        self.assertEqual(shared.multiply("k=2&transpose=1&x_at=4096&y_at=65536", name="m").status, 204)
        size = 8 * self.a.shape[1]
        for j in range(2):
            self.assertEqual(shared.get(65536 + j * size, size), self.multiply(service, "transpose=1", x[j].tobytes(), "m").body)
        for rank, was in zip(service.get("/v1/matrices/m").json["ranks"], before):
            self.assertGreater(rank["device_bytes"], was["device_bytes"])

    def test_commands(self):
        service = self.start("--ranks", 2)
        self.loaded(service, "m", "wide.bsp.h5")
        x = self.of_rows(1, columns=3)
        write_vector(self.path("x.npy"), x.T)
        self.succeed("client", "multiply", "m", "x.npy", "y.npy", "--rhs", 3, "--transpose", "--state", service.state)
        y = read_vector(self.path("y.npy"))
        for j in range(3):
            self.assertEqual(np.ascontiguousarray(y[:, j]).tobytes(), self.multiply(service, "transpose=1", x[j].tobytes(), "m").body)
        write_vector(self.path("x1.npy"), x[0])
        self.succeed("multiply", "wide.bsp.h5", "--transpose", "--x", "x1.npy", "--output", "far.npy", "--iterations", 0,
                     "--remote", service.state)
        self.assert_bits(read_vector(self.path("far.npy")).tobytes(), self.of_command(x[0], 2, "f64", "wide.bsp.h5").tobytes())


if __name__ == "__main__":
    unittest.main()
