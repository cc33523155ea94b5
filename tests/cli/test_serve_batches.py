"""Batches of many small matrices: POST /v1/batches."""

import os
import pathlib
import re
import resource
import signal
import threading
import unittest
import urllib.parse

import h5py
import numpy as np
import scipy.sparse as sp

from service import at_once
from support import BACKEND, INPUT, OK, read_vector, write_vector
from test_serve import NAMES, ServiceTest
from test_serve_door import LISTEN, DoorTest


class Batch:
    """Random small matrices with their x, and the body of a request for them."""

    def __init__(self, seed, count=40, columns=1, type="f64", most=30):
        random = np.random.default_rng(seed)
        self.columns, self.type, dtype = columns, type, NAMES[type]
        self.matrices = []
        for i in range(count):
            rows, cols = random.integers(1, most, 2)
            matrix = sp.random(rows, cols, density=random.uniform(0, 0.5), random_state=int(random.integers(1 << 30)), format="csr", dtype=np.float64)
            self.matrices.append(matrix.astype(dtype))
        self.x = random.uniform(-1, 1, (self.first("shape", 1)[-1], columns)).astype(dtype)

    def first(self, what, which=None):
        sizes = [m.nnz if which is None else m.shape[which] for m in self.matrices]
        return np.concatenate([[0], np.cumsum(sizes)]).astype("<i8")

    def arrays(self):
        first_entry = self.first("nnz")
        row_ptr = np.concatenate([[0], *(m.indptr[1:] + first for m, first in zip(self.matrices, first_entry))]).astype("<i8")
        return {"first_row": self.first("shape", 0), "first_col": self.first("shape", 1), "row_ptr": row_ptr,
                "values": np.concatenate([m.data for m in self.matrices]), "x": self.x,
                "columns": np.concatenate([m.indices for m in self.matrices]).astype("<i4")}

    def body(self, **changed):
        return b"".join(np.ascontiguousarray(array).tobytes() for array in {**self.arrays(), **changed}.values())

    def query(self, **more):
        sizes = {"count": len(self.matrices), "rows": int(self.first("shape", 0)[-1]), "cols": int(self.first("shape", 1)[-1]),
                 "nnz": int(self.first("nnz")[-1]), "k": self.columns, "type": self.type}
        return urllib.parse.urlencode({**sizes, **more})

    def y(self):
        ends = self.first("shape", 1)
        return np.concatenate([m.astype(np.float64) @ self.x[begin:end].astype(np.float64) for m, begin, end in zip(self.matrices, ends, ends[1:])])


class BatchTest(ServiceTest):
    def ask(self, service, batch, status=200, body=None, fields={}, **more):
        answer = service.ask("POST", "/v1/batches?" + batch.query(**more), batch.body() if body is None else body, Content_Type="application/octet-stream",
                             **fields)
        self.assertEqual(answer.status, status, answer)
        return answer

    def together(self, service, batches, **more):
        """The answers to batches that wait until the ranks, which stand still, have multiplied the first one."""
        answers = [None] * len(batches)
        for pid in service.workers():
            os.kill(pid, signal.SIGSTOP)

        def ask(number):
            answers[number] = service.ask("POST", "/v1/batches?" + batches[number].query(**more), batches[number].body())

        def metric():
            return next(int(line.split()[1]) for line in service.get("/metrics").body.decode().splitlines() if line.startswith("shardmat_arena_bytes{kind=\"used\"}"))

        threads = []
        try:
            expected = metric()
            for number, batch in enumerate(batches):  # one after another, so that the first one is under way
                threads.append(threading.Thread(target=ask, args=(number,)))
                threads[-1].start()
                expected += len(batch.body()) + batch.y().nbytes // (1 if batch.type == "f64" else 2)
                service.wait_for("a batch in the arena", lambda: metric() >= expected)
        finally:
            for pid in service.workers():
                os.kill(pid, signal.SIGCONT)
            for thread in threads:
                thread.join()
        return answers


class Answers(BatchTest):
    def test_y_is_that_of_scipy_with_the_same_bits_on_any_number_of_ranks(self):
        first = {}
        for ranks in (1, 2, 3):
            service = self.start("--ranks", ranks, state=f"state{ranks}")
            for seed, count, columns, type in ((1, 40, 1, "f64"), (2, 40, 5, "f64"), (3, 300, 16, "f32"), (4, 1, 3, "f64"), (5, 2, 1, "f32"), (6, 30, 33, "f32")):
                with self.subTest(ranks=ranks, seed=seed):
                    batch = Batch(seed, count, columns, type)
                    answer = self.ask(service, batch)
                    y = np.frombuffer(answer.body, NAMES[type]).reshape(-1, columns)
                    np.testing.assert_allclose(y, batch.y(), rtol=0, atol=1e-12 if type == "f64" else 1e-4)
                    self.assertEqual((answer.headers["Shardmat-Shape"], answer.headers["Shardmat-Type"], answer.headers["Shardmat-Merged"]),
                                     (f"{len(y)},{columns}", type, "1"))
                    self.assertIn("product;dur=", answer.headers["Server-Timing"])
                    self.assertEqual(first.setdefault(seed, answer.body), answer.body)
            self.assertEqual(service.get("/v1/ranks").json["arena"]["used"], 0)
            self.assertEqual(service.terminate(), OK, service.report())

    def test_those_that_wait_are_one_product_with_the_same_bits(self):
        for ranks in (1, 2):
            service = self.start("--ranks", ranks, state=f"state{ranks}")
            for type in ("f64", "f32"):
                batches = [Batch(10 + i, 20 + 7 * i, 4, type, most=3 + 9 * i) for i in range(6)]
                alone = [self.ask(service, batch, alone=1).body for batch in batches]
                answers = self.together(service, batches)
                self.assertEqual([answer.status for answer in answers], [200] * 6)
                self.assertEqual([answer.body for answer in answers], alone)
                self.assertEqual([answer.headers["Shardmat-Merged"] for answer in answers], ["1", "5", "5", "5", "5", "5"])
                self.assertEqual([answer.headers["Shardmat-Merged"] for answer in self.together(service, batches, alone=1)], ["1"] * 6)
            # Others have another type or k.
            others = [Batch(20, columns=2), Batch(21, columns=2), Batch(22, columns=3), Batch(23, columns=2, type="f32"), Batch(24, columns=2)]
            answers = self.together(service, others)
            self.assertEqual([answer.headers["Shardmat-Merged"] for answer in answers], ["1", "2", "1", "1", "2"])
            metrics = service.get("/metrics").body.decode()
            self.assertIn("\nshardmat_batches_total 41\n", metrics)
            self.assertIn(f"\nshardmat_batch_products_total {2 * (6 + 2 + 6) + 4}\n", metrics)
            self.assertEqual(service.terminate(), OK, service.report())
        service = self.start("--no-merge", state="no_merge")
        self.assertEqual([answer.headers["Shardmat-Merged"] for answer in self.together(service, batches)], ["1"] * 6)

    def test_what_is_wrong_with_one_batch_is_said_of_it_alone(self):
        for ranks in (1, 2):
            service = self.start("--ranks", ranks, state=f"state{ranks}")
            batch = Batch(30, 40)
            arrays = batch.arrays()

            def changed(name, at, value):
                array = arrays[name].copy()
                array[at] = value
                return {name: array}

            matrix = next(i for i in range(30, 40) if batch.matrices[i].nnz > 0)
            entry = int(batch.first("nnz")[matrix])
            row = int(np.flatnonzero(np.diff(batch.matrices[matrix].indptr))[0])
            end = len(arrays["row_ptr"]) - 1
            for change, says in ((changed("first_row", 0, 1), "first_row begins with 1"), (changed("first_row", 3, 10**6), "first_row decreases from 1000000"),
                                 (changed("first_row", -1, -1), "first_row decreases"), (changed("first_col", 40, 10**7), "cols="),
                                 (changed("first_col", 5, -7), "first_column decreases"), (changed("row_ptr", end, 1), "nnz="),
                                 (changed("row_ptr", 0, 5), "row_ptr begins with 5"), (changed("row_ptr", batch.first("s", 0)[7], 2**62), "row_ptr of matrix 6"),
                                 (changed("columns", entry, 99), f"matrix {matrix}, entry 0 (row {row}): column 99"),
                                 (changed("columns", entry, -1), f"matrix {matrix}, entry 0"), (changed("values", entry, np.nan), f"matrix {matrix}, entry 0"),
                                 (changed("values", entry, np.inf), f"matrix {matrix}, entry 0")):
                with self.subTest(ranks=ranks, says=says):
                    self.assert_problem(self.ask(service, batch, 422, batch.body(**change)), 422, "bad_batch", says)
            good, bad = [Batch(31), Batch(32), Batch(33)], Batch(34)
            bad.matrices[1].data[:] = np.inf
            bad.matrices[20].data[:] = np.inf
            answers = self.together(service, [good[0], good[1], bad, good[2]])
            self.assertEqual([answer.status for answer in answers], [200, 200, 422, 200])
            self.assertEqual([answers[i].body for i in (0, 1, 3)], [self.ask(service, one).body for one in good])
            self.assertEqual(answers[1].headers["Shardmat-Merged"], "3")
            batch.x[3] = np.nan  # as of products
            np.testing.assert_allclose(np.frombuffer(self.ask(service, batch).body), batch.y()[:, 0], atol=1e-12)
            self.assertEqual(service.get("/v1/ranks").json["arena"]["used"], 0)
            self.assertEqual(service.terminate(), OK, service.report())

    def test_wrong_requests_and_limits(self):
        service = self.start("--arena", "1MiB")
        batch = Batch(40)

        def refused(query, status, code, says, body=b"", **fields):
            self.assert_problem(service.ask("POST", "/v1/batches?" + query, body, **fields), status, code, says)

        refused("k=1", 400, "malformed", "count is missing")
        refused("count=1&rows=1&cols=1", 400, "malformed", "nnz is missing")
        for query, says in (("count=0", "count must be a whole number from 1"), ("rows=x", "rows"), ("cols=99999999999", "to 2147"), ("k=0", "k must"),
                            ("k=5000", "to 4096"), ("type=f16", "f64 or f32"), ("alone=yes", "alone"), ("priority=now", "priority"), ("beta=1", '"beta"')):
            refused(batch.query() + "&" + query if "=" in query and query.split("=")[0] not in batch.query() else query, 400, "malformed", says)
        refused(batch.query(), 422, "wrong_length", str(len(batch.body())), batch.body() + b"1")
        refused(batch.query(), 415, "content_type", "octet-stream", batch.body(), Content_Type="application/json")
        refused("count=1&rows=100000&cols=1&nnz=0&k=100", 413, "arena_too_small", "the batch and Y", b"",
                **{"Content_Length": str(8 * (2 + 2 + 100001 + 100))})
        refused(batch.query(), 400, "malformed", "Deadline", batch.body(), **{"Shardmat-Deadline-Ms": "-1"})
        self.assertEqual(service.terminate(), OK, service.report())


class Rights(DoorTest):
    def test_scopes_memory_and_priorities(self):
        service = self.start(*LISTEN, "--tokens", self.write_tokens(("rrr", "reader", ["read"], {}), ("sss", "small", ["multiply"], {"memory_bytes": 1000}),
                                                                    ("lll", "low", ["multiply"], {"priority": "low"})))
        batch = Batch(50)
        target = "/v1/batches?" + batch.query()
        for token, status, code, more in (("rrr", 403, "missing_scope", ""), ("sss", 413, "token_memory", ""), ("lll", 403, "priority", "&priority=high")):
            self.assert_problem(self.ask(service, "POST", target + more, batch.body(), token), status, code)
        answer = self.ask(service, "POST", target, batch.body(), "lll")
        self.assertEqual(answer.status, 200, answer)
        self.assertIn('shardmat_token_seconds_total{token="low"}', service.get("/metrics").body.decode())  # it is charged
        self.assertEqual(service.terminate(), OK, service.report())


class Memory(BatchTest):
    def status(self, pid, field):
        return int(re.search(rf"{field}:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) << 10

    @unittest.skipIf(BACKEND == "cuda", "a limit of the address space leaves CUDA no room")
    def test_a_rank_without_memory_refuses_before_it_takes_any(self):
        service = self.start("--ranks", 1, "--arena", 1 << 28)
        small = Batch(80)
        expected = self.ask(service, small).body
        large = Batch(81, 1)
        matrix = sp.random(1000, 3000, density=1, random_state=1, format="csr")
        large.matrices, large.x = [matrix], np.ones((3000, 1))
        body = large.body()
        self.assertGreater(len(body), 35e6)
        worker = service.workers()[0]
        # Values and their block, twice the body, have no room. Those of the first step have.
        before = resource.prlimit(worker, resource.RLIMIT_AS)
        resource.prlimit(worker, resource.RLIMIT_AS, (self.status(worker, "VmSize") + len(body), before[1]))
        pathlib.Path(f"/proc/{worker}/clear_refs").write_text("5")  # the peak begins anew
        peak = self.status(worker, "VmHWM")
        answer = self.ask(service, large, 507, body)
        self.assert_problem(answer, 507, "no_memory", "the batch on this rank needs")
        self.assertLess(self.status(worker, "VmHWM") - peak, 4 << 20)
        self.assertEqual(self.ask(service, small).body, expected)  # it lives
        resource.prlimit(worker, resource.RLIMIT_AS, before)
        y = np.frombuffer(self.ask(service, large, body=body).body)
        np.testing.assert_allclose(y, matrix @ np.ones(3000), rtol=1e-12)
        self.assertEqual(service.terminate(), OK, service.report())


class Life(BatchTest):
    def test_many_clients_at_once_and_lost_ranks(self):
        service = self.start("--ranks", 2, "--restart-delay", 0.05)
        batches = [Batch(60 + i, 10 + i, 2) for i in range(8)]
        expected = [self.ask(service, batch).body for batch in batches]
        wrong, lost = [], []

        def client(number):
            connection = service.connection()
            for i in range(60):
                which = (number + i) % len(batches)
                answer = service.ask("POST", "/v1/batches?" + batches[which].query(), batches[which].body(), connection)
                if answer.status in (429, 503):
                    lost.append(which)
                elif (answer.status, answer.body) != (200, expected[which]):
                    wrong.append(str(answer))
            connection.close()

        killer = threading.Timer(0.2, lambda: os.kill(service.workers()[-1], signal.SIGKILL))
        killer.start()
        at_once(6, client)
        killer.join()
        self.assertEqual(wrong, [])
        service.wait_until_ready()
        self.assertEqual([self.ask(service, batch).body for batch in batches], expected)
        self.assertEqual(service.get("/v1/ranks").json["arena"]["used"], 0)
        self.assertEqual(service.terminate(), OK, service.report())

    def wide(self, nnz, columns=1):
        """A batch of one full matrix."""
        batch = Batch(90, 1, columns)
        batch.matrices = [sp.csr_matrix(np.ones((nnz // 1000, 1000)))]
        batch.x = np.ones((1000, columns))
        return batch

    def code_behind(self, service, waiting, batch, seconds):
        """The answer to a batch with this deadline behind others, while the ranks stand still: "busy" at once, or "deadline"."""
        bodies = {id(one): one.body() for one in (*waiting, batch)}
        threads = [threading.Thread(target=service.ask, args=("POST", "/v1/batches?" + one.query(), bodies[id(one)])) for one in waiting]
        for pid in service.workers():
            os.kill(pid, signal.SIGSTOP)
        try:
            expected = 0
            for thread, one in zip(threads, waiting):
                thread.start()
                expected += len(bodies[id(one)]) + one.y().nbytes
                service.wait_for("a batch in the arena", lambda: service.get("/v1/ranks").json["arena"]["used"] >= expected)
            answer = service.ask("POST", "/v1/batches?" + batch.query(), bodies[id(batch)], Shardmat_Deadline_Ms=str(1000 * seconds))
        finally:
            for pid in service.workers():
                os.kill(pid, signal.SIGCONT)
            for thread in threads:
                thread.join()
        return answer.json["code"]

    def test_waits_are_estimated_by_size(self):
        service = self.start("--ranks", 1, "--arena", 1 << 30, "--timeout", 60)
        large, small = self.wide(2_000_000, 8), self.wide(1000, 8)
        body = large.body()

        def seconds():
            parts = dict(part.strip().split(";dur=") for part in self.ask(service, large, body=body).headers["Server-Timing"].split(","))
            return sum(float(parts[name]) for name in ("copy-in", "product", "copy-out")) / 1000

        took = [seconds() for _ in range(3)][-1]
        for _ in range(30):  # which say nothing of large ones
            self.ask(service, small)
        self.assertEqual(self.code_behind(service, [large] * 4, small, took), "busy")
        for _ in range(10):  # nor these of small ones
            seconds()
        self.assertEqual(self.code_behind(service, [small] * 4, small, took / 4), "deadline")
        self.assertEqual(service.terminate(), OK, service.report())

    def test_a_deadline_passes_while_it_waits(self):
        service = self.start()
        batch = Batch(70)
        for pid in service.workers():
            os.kill(pid, signal.SIGSTOP)
        try:
            first = threading.Thread(target=lambda: service.ask("POST", "/v1/batches?" + batch.query(), batch.body()))
            first.start()
            service.wait_for("a batch in the arena", lambda: service.get("/v1/ranks").json["arena"]["used"] > 0)
            self.assert_problem(self.ask(service, batch, 504, fields={"Shardmat-Deadline-Ms": "50"}), 504, "deadline")
        finally:
            for pid in service.workers():
                os.kill(pid, signal.SIGCONT)
        first.join()
        self.assertEqual(service.terminate(), OK, service.report())


class Client(BatchTest):
    def test_it_sends_a_batch_file(self):
        service = self.start("--ranks", 2)
        state = ["--state", service.state]
        self.succeed("batch", "batch:count=20,dim=1-9,row_nnz=1-3,seed=4", "--save", "b.h5", "--type", "f64", "--iterations", 0)
        for type in ("f64", "f32"):
            with h5py.File(self.path("b.h5")) as file:
                first_row, first_col = file["first_row"][:], file["first_column"][:] if "first_column" in file else file["first_row"][:]
                ptr, columns, values = file["pointers_to_1"][:], file["indices_1"][:], file["values"][:].astype(np.float64)
            x = np.random.default_rng(1).uniform(-1, 1, (first_col[-1], 3)).astype(NAMES[type])
            write_vector(self.path("x.npy"), x)
            said = self.succeed("client", "batch", "b.h5", "x.npy", "y.npy", "--rhs", 3, "--type", type, "--force", *state).out
            self.assertEqual(said, f"{len(first_row) - 1} matrices, multiplied with those of 0 other requests\n")
            which = np.searchsorted(first_row, np.arange(first_row[-1]), "right") - 1  # the matrix of each row
            stacked = sp.csr_matrix((values, columns + np.repeat(first_col[which], np.diff(ptr)), ptr), shape=(first_row[-1], first_col[-1]))
            np.testing.assert_allclose(read_vector(self.path("y.npy")), stacked @ x.astype(np.float64), rtol=0, atol=1e-12 if type == "f64" else 1e-3)
        self.fail_with(INPUT, "client", "batch", "none.h5", "x.npy", "y.npy", *state, says="none.h5")
        write_vector(self.path("short.npy"), x[1:])
        self.fail_with(INPUT, "client", "batch", "b.h5", "short.npy", "y.npy", "--rhs", 3, "--force", *state, says="columns")


if __name__ == "__main__":
    unittest.main()
