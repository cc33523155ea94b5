"""Vectors that stay on the ranks, y = alpha·A·x + beta·y, and the order of what is done with one vector."""

import http.client
import json
import os
import re
import signal
import socket
import unittest

import numpy as np
import scipy.sparse as sp

from support import BACKEND, LIMIT, OK, read_vector, write_binsparse, write_vector
from test_serve import NAMES, ServiceTest


class VectorsTest(ServiceTest):
    def make(self, service, **what):
        answer = service.ask("POST", "/v1/vectors", json.dumps(what))
        self.assertEqual(answer.status, 201, answer)
        self.assertEqual(answer.headers["Location"], "/v1/vectors/" + answer.json["id"])
        return answer.json["id"]

    def put(self, service, id, values):
        return service.ask("PUT", f"/v1/vectors/{id}", values.tobytes(), Content_Type="application/octet-stream")

    def written(self, service, values, **what):
        id = self.make(service, **what)
        answer = self.put(service, id, values)
        self.assertEqual((answer.status, answer.body), (204, b""), answer)
        return id

    def get(self, service, id):
        answer = service.get(f"/v1/vectors/{id}")
        self.assertEqual(answer.status, 200, answer)
        return answer.body

    def multiply(self, service, query, body=b"", name="bar", connection=None, status=None):
        answer = service.ask("POST", f"/v1/matrices/{name}/multiply" + ("?" + query if query else ""), body, connection)
        self.assertIn(answer.status, (200, 204) if status is None else (status,), answer)
        return answer

    def product(self, x, ranks, y=None, type="f64", alpha=1, beta=0, source="bar.h5"):
        write_vector(self.path("x.npy"), x)
        options = []
        if y is not None:
            write_vector(self.path("y0.npy"), y)
            options = ["--y0", "y0.npy"]
        self.succeed("multiply", self.library / source, "--x", "x.npy", "--output", "y.npy", "--force", "--type", type, "--iterations", 0,
                     "--backend", BACKEND, "--alpha", alpha, "--beta", beta, *options, ranks=ranks)
        return read_vector(self.path("y.npy")).tobytes()


class Beta(VectorsTest):
    def test_y_comes_behind_x(self):
        for ranks in (1, 2):
            service = self.start("--ranks", ranks)
            for type in ("f64", "f32"):
                with self.subTest(ranks=ranks, type=type):
                    self.loaded(service, "m", type=type)
                    x, y = self.vector(1, type, 3), self.vector(2, type, 3)
                    query = "k=3&alpha=0.3&beta=-0.7"
                    answer = self.multiply(service, query, np.concatenate([x, y]).tobytes(), "m")
                    single = [self.product(x[j], ranks, y[j], type, 0.3, -0.7) for j in range(3)]
                    self.assertEqual(answer.body, b"".join(single))
                    self.assertEqual(answer.headers["Shardmat-Shape"], f"3,{self.matrix.shape[0]}")
                    self.assert_problem(self.multiply(service, query, x.tobytes(), "m", status=422), 422, "wrong_length", str(2 * x.nbytes))
                    nan = np.full_like(y[0], np.nan)
                    self.assertFalse(np.isnan(self.y_of(self.multiply(service, "beta=0", x[0].tobytes(), "m"), type)).any())
                    self.assertTrue(np.isnan(self.y_of(self.multiply(service, "beta=1", np.concatenate([x[0], nan]).tobytes(), "m"), type)).all())
                    self.assertEqual(service.ask("POST", "/v1/matrices/m/unload").status, 200)
            self.assertEqual(service.terminate(), OK, service.report())


class Vectors(VectorsTest):
    def test_they_are_made_written_read_and_deleted(self):
        for ranks in (1, 2):
            with self.subTest(ranks=ranks):
                service = self.start("--ranks", ranks, state=f"state{ranks}")
                self.loaded(service)
                values = self.vector(1, columns=3)
                self.assertEqual(service.get("/v1/vectors").json, {"vectors": []})
                for what in ({"matrix": "bar"}, {"n": self.matrix.shape[1]}):
                    for columns in (1, 3):
                        id = self.make(service, columns=columns, **what)
                        self.assertEqual(self.get(service, id), bytes(values[:columns].nbytes))
                        self.assertEqual(self.put(service, id, values[:columns]).status, 204)
                        answer = service.get(f"/v1/vectors/{id}")
                        self.assertEqual(answer.body, values[:columns].tobytes())
                        shape = f"{self.matrix.shape[1]}"
                        self.assertEqual(answer.headers["Shardmat-Shape"], shape if columns == 1 else f"3,{shape}")
                        one = service.get("/v1/vectors").json["vectors"][-1]
                        self.assertEqual((one["id"], one["n"], one["columns"], one["type"], one["state"]),
                                         (id, self.matrix.shape[1], columns, "f64", "ready"))
                        self.assertEqual(sum(one["device_bytes"]), values[:columns].nbytes)
                        answer = service.ask("DELETE", f"/v1/vectors/{id}")
                        self.assertEqual((answer.status, answer.body), (204, b""))
                        self.assert_problem(service.get(f"/v1/vectors/{id}"), 404, "no_vector", id)
                        self.assert_problem(service.ask("DELETE", f"/v1/vectors/{id}"), 404, "no_vector", id)
                self.assertEqual(service.get("/v1/vectors").json, {"vectors": []})
                self.assertEqual(service.get("/v1/ranks").json["arena"]["used"], 0)
                self.assertEqual(service.terminate(), OK, service.report())

    def test_products_have_the_bits_of_multiply(self):
        for ranks in (1, 2):
            service = self.start("--ranks", ranks)
            for type in ("f64", "f32"):
                with self.subTest(ranks=ranks, type=type):
                    self.loaded(service, "m", type=type)
                    x0, y0 = self.vector(1, type)[0], self.vector(2, type)[0]
                    x, y = self.written(service, x0, matrix="m"), self.written(service, y0, matrix="m")
                    plain = self.product(x0, ranks, None, type)
                    self.assertEqual(self.multiply(service, f"x={x}", name="m").body, plain)
                    both = self.product(x0, ranks, y0, type, 0.3, -0.7)
                    self.assertEqual(self.multiply(service, f"x={x}&alpha=0.3&beta=-0.7", y0.tobytes(), "m").body, both)
                    answer = self.multiply(service, f"x={x}&y={y}&alpha=0.3&beta=-0.7", name="m", status=204)
                    self.assertEqual(answer.body, b"")
                    for field in ("Shardmat-Shape", "Shardmat-Type", "Shardmat-Batch", "Shardmat-Generation", "Server-Timing"):
                        self.assertIn(field, answer.headers)
                    self.assertEqual(self.get(service, y), both)
                    self.multiply(service, f"y={y}", x0.tobytes(), "m", status=204)
                    self.assertEqual(self.get(service, y), plain)
                    self.assertEqual(self.get(service, x), x0.tobytes())
                    self.assertEqual(service.ask("POST", "/v1/matrices/m/unload").status, 200)
                    self.assertEqual(self.get(service, y), plain)  # it does not need its matrix
            self.assertEqual(service.terminate(), OK, service.report())

    def test_blocks_of_columns(self):
        for ranks in (1, 2):
            service = self.start("--ranks", ranks, state=f"state{ranks}")
            self.loaded(service)
            bytes_before = service.get("/v1/matrices/bar").json["ranks"][0]["device_bytes"]
            for columns in (2, 3, 40):
                with self.subTest(ranks=ranks, columns=columns):
                    x0, y0 = self.vector(1, columns=columns), self.vector(2, columns=columns)
                    x, y = (self.written(service, v, matrix="bar", columns=columns) for v in (x0, y0))
                    chosen = range(columns) if columns == 2 else (0, columns - 1)
                    plain = {j: self.multiply(service, "", x0[j].tobytes()).body for j in range(columns)}
                    added = {j: self.multiply(service, "alpha=0.3&beta=-0.7", np.concatenate([x0[j], y0[j]]).tobytes()).body
                             for j in range(columns)}
                    for j in chosen[:1] if ranks == 1 else ():
                        self.assertEqual(added[j], self.product(x0[j], ranks, y0[j], alpha=0.3, beta=-0.7))
                    all_plain, all_added = b"".join(plain.values()), b"".join(added.values())
                    self.assertEqual(self.multiply(service, f"x={x}").body, all_plain)
                    self.assertEqual(self.multiply(service, f"x={x}&alpha=0.3&beta=-0.7&k={columns}", y0.tobytes()).body, all_added)
                    answer = self.multiply(service, f"x={x}&y={y}&alpha=0.3&beta=-0.7", status=204)
                    self.assertEqual(answer.headers["Shardmat-Batch"], f"{columns}/{columns}")
                    self.assertEqual(self.get(service, y), all_added)
                    self.multiply(service, f"y={y}", x0.tobytes(), status=204)
                    self.assertEqual(self.get(service, y), all_plain)
            self.assertGreater(service.get("/v1/matrices/bar").json["ranks"][0]["device_bytes"], bytes_before)
            self.assertEqual(service.terminate(), OK, service.report())

    def test_permuted_rows_and_a_matrix_that_is_not_square(self):
        self.succeed("partition", self.library / "elasticity_bar.mtx.gz", self.library / "permuted.h5", "--force", "--reorder", "rcm")
        wide = sp.random(300, 500, 0.05, "csr", random_state=1)
        write_binsparse(self.library / "wide.h5", wide)
        service = self.start("--ranks", 2)
        self.loaded(service)
        self.loaded(service, "permuted", "permuted.h5")
        self.loaded(service, "wide", "wide.h5")
        x0 = self.vector(1)[0]
        x = self.written(service, x0, matrix="permuted")
        self.assertEqual(self.get(service, x), x0.tobytes())
        self.assertEqual(self.multiply(service, f"x={x}", name="permuted").body,
                         self.multiply(service, "", x0.tobytes(), "permuted").body)
        refused = self.multiply(service, f"x={x}", status=422)
        self.assert_problem(refused, 422, "wrong_distribution", '{"matrix": "bar"}')
        n = self.matrix.shape[0]
        maps = re.match(rf"{x} lies on row map ([0-9a-f]{{16}}) \({n} entries, made for permuted\), but x of bar on row map ([0-9a-f]{{16}}) \({n} ent",
                        refused.json["error"])
        self.assertIsNotNone(maps, refused)
        self.assertNotEqual(maps[1], maps[2])
        in_parts = self.multiply(service, f"x={self.make(service, n=n)}&y={x}", status=422).json["error"]
        self.assertRegex(in_parts, rf"^vec-\w+ lies on row map [0-9a-f]{{16}} \({n} entries, in equal parts\), but x of bar on row map {maps[2]} ")
        of_x, of_y = self.make(service, matrix="wide"), self.make(service, matrix="wide", layout="rows")
        v = np.random.default_rng(1).uniform(-1, 1, 500)
        self.assertEqual(self.put(service, of_x, v).status, 204)
        self.multiply(service, f"x={of_x}&y={of_y}", name="wide", status=204)
        self.assertEqual(self.get(service, of_y), self.multiply(service, "", v.tobytes(), "wide").body)
        np.testing.assert_allclose(np.frombuffer(self.get(service, of_y)), wide @ v, atol=1e-13)
        self.assert_problem(self.multiply(service, f"x={of_y}", name="wide", status=422), 422, "wrong_length", "500")
        equal = self.written(service, v, n=500)
        self.assertEqual(self.multiply(service, f"x={equal}", name="wide").body, self.get(service, of_y))

    def test_matrices_with_one_distribution_share_vectors(self):
        service = self.start("--ranks", 2)
        self.loaded(service, "a")
        self.loaded(service, "b")
        x0 = self.vector(1)[0]
        x, y = self.written(service, x0, matrix="a"), self.make(service, matrix="b")
        self.multiply(service, f"x={x}&y={y}", name="a", status=204)
        self.assertEqual(self.get(service, y), self.multiply(service, f"x={x}", name="b").body)

    def test_wrong_requests_get_their_status(self):
        service = self.start("--ranks", 2, "--arena", "64KiB")
        self.loaded(service)
        self.loaded(service, "single", type="f32")
        for what, says in (({}, "matrix, or n"), ({"n": 0}, "n must be"), ({"n": 5, "colums": 1}, '"colums"'), ({"n": 5, "type": "f16"}, "f16")):
            self.assert_problem(service.ask("POST", "/v1/vectors", json.dumps(what)), 400, "malformed", says)
        self.assert_problem(service.ask("POST", "/v1/vectors", '{"matrix": "none"}'), 404, "no_matrix", "none")
        self.assert_problem(service.ask("POST", "/v1/vectors", '{"matrix": "bar", "type": "f32"}'), 422, "wrong_type", "f64")
        for size in (10**13, 2**48):
            answer = service.ask("POST", "/v1/vectors", json.dumps({"n": size, "columns": 256}))
            self.assert_problem(answer, 507, "no_memory", "B")
            self.assertRegex(answer.json["error"], r"\d", answer)
        self.assertEqual(service.get("/v1/ranks").json["restarts"], 0)
        x0 = self.vector(1)[0]
        x, block = self.written(service, x0, matrix="bar"), self.make(service, matrix="bar", columns=2)
        self.assert_problem(self.put(service, x, x0[1:]), 422, "wrong_length", "7800")
        self.assert_problem(service.ask("PUT", f"/v1/vectors/{x}", x0.tobytes(), Content_Type="text/plain"), 415, "content_type")
        self.assert_problem(self.put(service, self.make(service, n=10_000), np.zeros(10_000)), 413, "arena_too_small", "80000")
        for query, body, code, says in ((f"x={x}&y={x}", b"", "same_vector", x), (f"x={x}&y={block}", b"", "wrong_columns", block),
                                        (f"x={x}", x0.tobytes(), "wrong_length", "takes 0"), (f"x={block}&k=3", b"", "wrong_columns", "3"),
                                        (f"x={x}&beta=1", b"", "wrong_length", "7800")):
            self.assert_problem(self.multiply(service, query, body, status=422), 422, code, says)
        self.assert_problem(self.multiply(service, f"x={x}", name="single", status=422), 422, "wrong_type", "f32")
        self.assert_problem(self.multiply(service, "x=vec-1000000", status=404), 404, "no_vector", "vec-1000000")
        self.assert_problem(self.multiply(service, "x=bar", status=404), 404, "no_vector", "bar")
        self.assert_problem(service.ask("POST", f"/v1/vectors/{x}"), 405, "method", "DELETE, GET, HEAD, PUT")
        self.assertEqual(self.get(service, x), x0.tobytes())

    def test_they_are_lost_with_the_ranks(self):
        service = self.start("--ranks", 2)
        self.loaded(service)
        x0 = self.vector(1)[0]
        x = self.written(service, x0, matrix="bar")
        os.kill(service.workers()[0], signal.SIGKILL)
        service.wait_for("the restart", lambda: service.get("/v1/ranks").json["restarts"] == 1)
        service.wait_until_ready()
        self.assertEqual(service.get("/v1/vectors").json["vectors"][0]["state"], "lost")
        new = self.written(service, x0, matrix="bar")
        self.assertNotEqual(x, new)
        for answer in (service.get(f"/v1/vectors/{x}"), self.put(service, x, x0), self.multiply(service, f"x={x}", status=410),
                       service.ask("DELETE", f"/v1/vectors/{x}")):
            self.assert_problem(answer, 410, "vector_lost", x)
        self.assertEqual([one["id"] for one in service.get("/v1/vectors").json["vectors"]], [new])  # who deletes it, knows
        self.assertEqual(service.terminate(), OK, service.report())
        service = self.start("--ranks", 2)
        self.assert_problem(service.get(f"/v1/vectors/{new}"), 404, "no_vector", new)
        self.assertNotIn(self.make(service, matrix="bar"), (x, new))


class Order(VectorsTest):
    def test_requests_with_vectors_are_merged_and_keep_their_bits(self):
        service = self.start("--ranks", 2)
        self.loaded(service)
        x0, y0 = self.vector(1, columns=16), self.vector(2, columns=16)
        x = [self.written(service, v, matrix="bar") for v in x0]
        y = [self.make(service, matrix="bar") for _ in x0]
        expected = [self.multiply(service, "alpha=0.3&beta=-0.7", np.concatenate(v).tobytes()).body for v in zip(x0, y0)]
        batches, wrong = [], []

        def client(number):
            connection = service.connection()
            ask = lambda query, body=b"": self.multiply(service, query, body, connection=connection)
            for turn in range(12):
                with_body = (number + turn) % 3 == 0
                if turn > 0:
                    service.ask("PUT", f"/v1/vectors/{y[number]}", y0[number].tobytes(), connection)
                if (number + turn) % 2 == 0:
                    answer = ask(f"x={x[number]}&alpha=0.3&beta=-0.7", y0[number].tobytes())
                    got = answer.body
                else:
                    answer = ask(f"{'' if with_body else 'x=' + x[number]}&y={y[number]}&alpha=0.3&beta=-0.7".lstrip("&"),
                                 x0[number].tobytes() if with_body else b"")
                    got = service.ask("GET", f"/v1/vectors/{y[number]}", None, connection).body
                if got != expected[number]:
                    wrong.append((number, turn))
                batches.append(tuple(map(int, answer.headers["Shardmat-Batch"].split("/"))))
            connection.close()

        for vector, values in zip(y, y0):
            service.ask("PUT", f"/v1/vectors/{vector}", values.tobytes())
        service.at_once_behind_ranks("bar", 16, client)
        self.assertEqual(wrong, [])
        self.assertEqual(len(batches), 16 * 12)
        self.assertGreater(max(columns for columns, _ in batches), 1)

    def test_what_is_done_with_a_vector_is_done_in_the_order_of_arrival(self):
        """Each request has a connection of its own and is sent in one piece, before anybody reads an answer."""
        service = self.start("--ranks", 2)
        self.loaded(service)
        x0 = self.vector(1)[0] / 100
        a, b, c = (self.written(service, x0, matrix="bar") for _ in range(3))
        # A slow product on the ranks lets the requests behind it wait together.
        block = self.make(service, matrix="bar", columns=256)
        step = lambda v: self.y_of(self.multiply(service, "", v.tobytes()))
        x1 = step(x0)
        x2 = step(x1)
        target = "/v1/matrices/bar/multiply"
        for turn in range(20):
            self.put(service, a, x0)
            requests = [("POST", f"{target}?x={block}", b""), ("POST", f"{target}?x={a}&y={b}", b""), ("POST", f"{target}?x={b}&y={c}", b""),
                        ("PUT", f"/v1/vectors/{b}", x0.tobytes()), ("POST", f"{target}?x={b}", b""), ("GET", f"/v1/vectors/{c}", b""),
                        ("POST", f"{target}?x={a}&y={c}", b""), ("GET", f"/v1/vectors/{c}", b"")]
            connections = []
            for method, path, body in requests:
                connections.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                connections[-1].settimeout(LIMIT)
                connections[-1].connect(str(service.socket))
                connections[-1].sendall(f"{method} {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            answers = [http.client.HTTPResponse(connection, method=method) for connection, (method, *_) in zip(connections, requests)]
            bodies = []
            for answer, connection in zip(answers, connections):
                answer.begin()
                bodies.append(answer.read())
                connection.close()
            self.assertEqual([answer.status for answer in answers], [200, 204, 204, 204, 200, 200, 204, 200])
            self.assertEqual(bodies[4], x1.tobytes(), turn)
            self.assertEqual(bodies[5], x2.tobytes(), turn)
            self.assertEqual(bodies[7], x1.tobytes(), turn)
            self.assertEqual(self.get(service, b), x0.tobytes())


if __name__ == "__main__":
    unittest.main()
