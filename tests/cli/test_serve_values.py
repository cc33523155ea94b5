"""New values for matrices of the service: whole and in pieces, generations, and what a restart leaves."""

import os
import signal
import socket
import threading
import unittest

import h5py
import numpy as np

from support import BACKEND, INPUT, OK, USAGE, read_vector, write_binsparse, write_vector
from test_serve import NAMES, ServiceTest


class ValuesTest(ServiceTest):
    """Puts random values into bar.h5, whose /values are in the order of SciPy's CSR."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with h5py.File(cls.library / "bar.h5", "r") as file:
            np.testing.assert_array_equal(file["indices_1"][()], cls.matrix.indices)
            np.testing.assert_array_equal(file["values"][()], cls.matrix.data)

    def values(self, seed, type="f64"):
        return np.random.default_rng(seed).uniform(-1, 1, self.matrix.nnz).astype(NAMES[type])

    def put(self, service, values, name="bar", query="", **headers):
        return service.ask("PUT", f"/v1/matrices/{name}/values{query}", values if isinstance(values, bytes) else values.tobytes(),
                           Content_Type="application/octet-stream", **headers)

    def assert_put(self, service, values, **more):
        answer = self.put(service, values, **more)
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.headers["Shardmat-Generation"], str(answer.json["generation"]))
        self.assertEqual(answer.json["state"], "ready")
        return answer.json["generation"]

    def product(self, values, x, ranks, type="f64", *options):
        """What `shardmat multiply` writes for a file with these values."""
        matrix = self.matrix.copy()
        matrix.data = values.astype(np.float64)
        write_binsparse(self.path("new.h5"), matrix)
        write_vector(self.path("x.npy"), x)
        self.succeed("multiply", "new.h5", "--x", "x.npy", "--output", "y.npy", "--force", "--type", type, "--iterations", 0,
                     "--backend", BACKEND, *options, ranks=ranks)
        return read_vector(self.path("y.npy")).tobytes()


class Values(ValuesTest):
    def test_products_have_the_bits_of_a_file_with_these_values(self):
        for ranks in (1, 2):
            service = self.start("--ranks", ranks)
            for type in ("f64", "f32"):
                with self.subTest(ranks=ranks, type=type):
                    loaded = self.loaded(service, "m", type=type, updatable=True)
                    self.assertTrue(loaded["updatable"])
                    x, generation = self.vector(1, type)[0], loaded["generation"]
                    first = service.multiply("m", x)
                    self.assertEqual(first.headers["Shardmat-Generation"], str(generation))
                    for seed in (1, 2):
                        values = self.values(seed, type)
                        new = self.assert_put(service, values, name="m")
                        self.assertGreater(new, generation)
                        generation = new
                        answer = service.multiply("m", x)
                        self.assertEqual(answer.headers["Shardmat-Generation"], str(generation))
                        self.assert_bits(answer.body, self.product(values, x, ranks, type), type)
                    wide = np.repeat(x[None, :], 4, axis=0)
                    self.assertEqual(service.multiply("m", wide, "?k=4").body, answer.body * 4)
                    self.assert_put(service, self.matrix.data.astype(NAMES[type]), name="m")
                    self.assertEqual(service.multiply("m", x).body, first.body)
                    described = service.get("/v1/matrices/m")
                    self.assertEqual(described.headers["Shardmat-Generation"], str(described.json["generation"]))
                    self.assertEqual(service.ask("POST", "/v1/matrices/m/unload").status, 200)
            self.assertEqual(service.terminate(), OK, service.report())

    def test_permuted_rows(self):
        service = self.start("--ranks", 2)
        for options in (["--reorder", "rcm"], ["--sort", "local"]):
            with self.subTest(options=options):
                self.succeed("partition", self.library / "elasticity_bar.mtx.gz", self.library / "permuted.h5", "--force", *options)
                self.loaded(service, "m", "permuted.h5", updatable=True)
                with h5py.File(self.library / "permuted.h5", "r") as file:
                    stored = file["values"][()]
                x = self.vector(1)[0]
                expected = service.multiply("m", x).body
                self.assert_put(service, 2 * stored, name="m")
                self.assertEqual(service.multiply("m", x).body, (2 * np.frombuffer(expected)).tobytes())
                self.assertEqual(service.ask("POST", "/v1/matrices/m/unload").status, 200)

    def test_values_larger_than_the_arena_come_in_pieces(self):
        service = self.start("--ranks", 2, "--arena", "64KiB")
        self.loaded(service, updatable=True)
        x, values = self.vector(1)[0], self.values(1)
        self.assert_put(service, values)
        expected = service.multiply("bar", x).body
        self.assert_bits(expected, self.product(values, x, 2))
        for place in (0, 5000, self.matrix.nnz - 1):
            wrong = values.copy()
            wrong[place] = np.inf
            self.assert_problem(self.put(service, wrong), 422, "bad_values", f"value {place} ")
            self.assertEqual(service.multiply("bar", x).body, expected)
        self.assert_put(service, self.values(2))
        self.assert_bits(service.multiply("bar", x).body, self.product(self.values(2), x, 2))
        self.assertEqual(service.get("/v1/ranks").json["arena"]["used"], 0)

    def test_a_client_that_leaves_changes_nothing(self):
        service = self.start("--ranks", 2, "--arena", "64KiB")
        self.loaded(service, updatable=True)
        x, values = self.vector(1)[0], self.values(1)
        expected = service.multiply("bar", x).body
        head = b"PUT /v1/matrices/bar/values HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % values.nbytes
        for sent in (100, 40_000, 200_000):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
                client.connect(str(service.socket))
                client.sendall(head + values.tobytes()[:sent])
                if sent == 200_000:
                    service.wait_for("the upload", lambda: self.put(service, values).status == 409)
        self.assertEqual(service.multiply("bar", x).body, expected)
        service.wait_for("the end of the upload", lambda: self.put(service, values).status == 200)
        self.assert_bits(service.multiply("bar", x).body, self.product(values, x, 2))
        self.assertEqual(service.get("/v1/ranks").json["restarts"], 0)

    def test_wrong_requests_get_their_status(self):
        service = self.start("--ranks", 2)
        self.loaded(service)
        values, x = self.values(1), self.vector(1)[0]
        self.assert_problem(self.put(service, values), 409, "not_updatable", '"updatable": true')
        self.assert_problem(self.put(service, values, name="none"), 404, "no_matrix", "none")
        self.loaded(service, "m", updatable=True)
        expected = service.multiply("m", x).body
        generation = service.get("/v1/matrices/m").json["generation"]
        self.assert_problem(self.put(service, values[1:], "m"), 422, "wrong_length", str(values.nbytes))
        self.assert_problem(self.put(service, values, "m", "?type=f32"), 422, "wrong_type", "f64")
        self.assert_problem(self.put(service, values, "m", "?k=1"), 400, "malformed", '"k"')
        self.assert_problem(self.put(service, values, "m", If_Match="1"), 400, "malformed", "If-Match")
        self.assert_problem(service.ask("PUT", "/v1/matrices/m/values", values.tobytes(), Content_Type="application/json"), 415, "content_type")
        self.assert_problem(service.ask("POST", "/v1/matrices/m/values", values.tobytes()), 405, "method", "PUT")
        self.assert_problem(service.ask("POST", "/v1/matrices/n/load", '{"source": "bar.h5", "updatable": 1}'), 400, "malformed", "updatable")
        for place in (3, self.matrix.nnz - 1):
            wrong = values.copy()
            wrong[place:] = np.nan
            self.assert_problem(self.put(service, wrong, "m"), 422, "bad_values", f"value {place} ")
        self.assertEqual(service.multiply("m", x).body, expected)
        self.assertEqual(service.get("/v1/matrices/m").json["generation"], generation)
        self.assertEqual(service.terminate(), OK, service.report())
        again = self.start("--ranks", 2)  # no values were lost
        self.assertEqual(again.multiply("m", x).body, expected)

    def test_products_and_values_of_one_generation_only(self):
        service = self.start("--ranks", 2)
        generation = self.loaded(service, updatable=True)["generation"]
        x = self.vector(1)[0]
        match = f'"{generation}"'
        self.assertEqual(service.multiply("bar", x, If_Match=match).status, 200)
        self.assertEqual(service.multiply("bar", x, If_Match="*").status, 200)
        new = self.assert_put(service, self.values(1), If_Match=match)
        for answer in (service.multiply("bar", x, If_Match=match), self.put(service, self.values(2), If_Match=match)):
            self.assert_problem(answer, 412, "generation", f"generation {new}, not {generation}")
            self.assertEqual(answer.headers["Shardmat-Generation"], str(new))
        self.assertEqual(service.multiply("bar", x, If_Match=f'"{new}"').status, 200)

    def test_concurrent_products_are_of_the_generation_that_they_name(self):
        service = self.start("--ranks", 2)
        generation = self.loaded(service, updatable=True)["generation"]
        x = self.vector(1)[0]
        expected, wrong, stop = {generation: service.multiply("bar", x).body}, [], threading.Event()
        seen = []

        def client():
            connection = service.connection()
            while not stop.is_set():
                answer = service.multiply("bar", x, connection=connection)
                seen.append((int(answer.headers["Shardmat-Generation"]), answer.body))
            connection.close()

        threads = [threading.Thread(target=client) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for seed in range(8):
                new = self.assert_put(service, self.values(seed))
                expected[new] = service.multiply("bar", x).body
                count = len(seen)
                service.wait_for("products", lambda: len(seen) > count + 8)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        wrong = [generation for generation, body in seen if expected[generation] != body]
        self.assertEqual(wrong, [])
        self.assertEqual(len(expected), 9)


class Client(ValuesTest):
    def test_put_values_and_beta(self):
        service = self.start("--ranks", 2)
        state = ["--state", service.state]
        for type in ("f64", "f32"):
            with self.subTest(type=type):
                self.succeed("client", "load", "m", "bar.h5", "--type", type, "--updatable", *state)
                values, x, y = self.values(1), self.vector(1, type, 2).T, self.vector(2, type, 2).T
                write_vector(self.path("values.npy"), values)
                self.assertIn("generation", self.succeed("client", "put-values", "m", "values.npy", *state).out)
                write_vector(self.path("x2.npy"), x)
                write_vector(self.path("y2.npy"), y)
                self.succeed("client", "multiply", "m", "x2.npy", "out.npy", "--rhs", 2, "--alpha", 0.3, "--beta", -0.7, "--y0", "y2.npy",
                             "--force", *state)
                out = read_vector(self.path("out.npy"))
                for j in (0, 1):
                    write_vector(self.path("y0.npy"), y[:, j])
                    expected = self.product(values, x[:, j], 2, type, "--alpha", 0.3, "--beta", -0.7, "--y0", "y0.npy")
                    self.assert_bits(np.ascontiguousarray(out[:, j]).tobytes(), expected, type)
                self.succeed("client", "put-values", "m", self.library / "bar.h5", *state)
                self.fail_with(INPUT, "client", "put-values", "m", "x2.npy", *state, says="x2.npy")
                self.fail_with(USAGE, "client", "multiply", "m", "x2.npy", "z.npy", "--beta", 1, *state, says="--y0")
                self.succeed("client", "unload", "m", *state)
        self.succeed("client", "load", "m", "bar.h5", *state)
        self.fail_with(INPUT, "client", "put-values", "m", "values.npy", *state, says="updatable")


class Restarts(ValuesTest):
    def test_values_are_lost_with_the_ranks(self):
        service = self.start("--ranks", 2)
        self.loaded(service, updatable=True)
        self.loaded(service, "other", updatable=True)
        x, values = self.vector(1)[0], self.values(1)
        original, generation = service.multiply("bar", x).body, self.assert_put(service, values)
        expected = service.multiply("bar", x).body
        os.kill(service.workers()[0], signal.SIGKILL)
        service.wait_for("the restart", lambda: service.get("/v1/ranks").json["restarts"] == 1)
        service.wait_until_ready()
        for turn in range(2):
            answer = service.multiply("bar", x)
            self.assert_problem(answer, 410, "values_lost", "put them again")
            described = service.get("/v1/matrices/bar").json
            self.assertEqual(described["state"], "values_lost")
            self.assertGreater(described["generation"], generation)
            self.assertEqual(service.multiply("other", x).body, original)
            if turn == 0:
                generation = described["generation"]
                self.assertEqual(service.terminate(), OK, service.report())
                service = self.start("--ranks", 2)
        state = ["--state", service.state]
        write_vector(self.path("x.npy"), x)
        write_vector(self.path("values.npy"), values)
        failed = self.fail_with(INPUT, "client", "multiply", "bar", "x.npy", "y.npy", *state, says="client put-values bar FILE")
        self.assertNotIn("load it again", failed.err)
        self.succeed("client", "put-values", "bar", "values.npy", *state)
        self.assertGreater(service.get("/v1/matrices/bar").json["generation"], described["generation"])
        self.assertEqual(service.multiply("bar", x).body, expected)

    def test_generations_never_come_again(self):
        seen = []
        for kill in (False, True, False):
            service = self.start()
            if not seen:
                self.loaded(service, updatable=True)
            seen.append(service.get("/v1/matrices/bar").json["generation"])
            seen.append(self.assert_put(service, self.values(1)))
            if kill:
                service.process.kill()
                service.process.wait()
                service.wait_for("the end of the ranks", lambda: service.processes() == [])
            else:
                self.assertEqual(service.terminate(), OK, service.report())
        self.assertEqual(seen, sorted(set(seen)))

    def test_a_matrix_that_is_loaded_anew_has_lost_nothing(self):
        service = self.start()
        self.loaded(service, updatable=True)
        self.assert_put(service, self.values(1))
        self.assertEqual(service.ask("POST", "/v1/matrices/bar/unload").status, 200)
        self.loaded(service)
        self.assertEqual(service.terminate(), OK, service.report())
        again = self.start()
        self.assertEqual(again.get("/v1/matrices/bar").json["state"], "ready")

    def test_values_whose_ranks_are_lost_half_way(self):
        service = self.start("--ranks", 2, "--arena", "64KiB")
        self.loaded(service, updatable=True)
        x, values = self.vector(1)[0], self.values(1)
        expected = service.multiply("bar", x).body
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(60)
            client.connect(str(service.socket))
            client.sendall(b"PUT /v1/matrices/bar/values HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % values.nbytes +
                           values.tobytes()[:100_000])
            service.wait_for("the upload", lambda: self.put(service, values).status == 409)
            os.kill(service.workers()[0], signal.SIGKILL)
            service.wait_for("the restart", lambda: service.get("/v1/ranks").json["restarts"] == 1)
            service.wait_until_ready()
            client.sendall(values.tobytes()[100_000:])
            self.assertIn(b" 503 ", client.recv(100))
        self.assertEqual(service.multiply("bar", x).body, expected)
        self.assert_put(service, values)


if __name__ == "__main__":
    unittest.main()
