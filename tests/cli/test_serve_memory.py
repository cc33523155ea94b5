"""The memory of the service's ranks: who is evicted, who is not, and matrices that take the place of others."""

import json
import os
import resource
import signal
import threading
import unittest

import numpy as np
import scipy.sparse as sp

from support import OK, write_binsparse
from test_schemas import faults, load as load_schema
from test_serve import ServiceTest

MATRIX_BYTES = 24 << 20


class Eviction(ServiceTest):
    """One rank whose address space has room for two of the large matrices."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        random, size, each = np.random.default_rng(1), 50000, 40  # sp.random() would permute all 50000² places
        columns = random.integers(0, size, size * each)
        large = sp.csr_matrix((random.random(size * each), columns, np.arange(0, size * each + 1, each)), shape=(size, size))
        large.sum_duplicates()
        write_binsparse(cls.library / "large.h5", large)
        write_binsparse(cls.library / "half.h5", large[:size // 2])

    @staticmethod
    def memory_of(process):
        with open(f"/proc/{process}/status") as status:
            return {line.split(":")[0]: int(line.split()[1]) << 10 for line in status if line.startswith(("VmSize:", "VmRSS:"))}

    def limited(self, room):
        """A service whose rank can take so many bytes."""
        service = self.start("--arena", "1MiB", "--launcher", "mpirun -n 1 env MALLOC_ARENA_MAX=1")
        [rank] = service.workers()
        used = self.memory_of(rank)["VmSize"]
        self.assertEqual(service.terminate(), OK)
        # One arena of malloc: with many cores, those of other threads would take addresses that no matrix gets.
        limit = f"env MALLOC_ARENA_MAX=1 prlimit --as={used + room}:{used + room}"
        return self.start("--arena", "1MiB", "--launcher", f"mpirun -n 1 {limit}")

    def states(self, service):
        return {one["name"]: one["state"] for one in service.get("/v1/matrices").json["matrices"]}

    def test_what_is_unloaded_comes_back(self):
        service = self.start("--arena", "1MiB", "--launcher", "mpirun -n 1")
        names = ["a", "b", "c"]

        def load_and_unload():
            for name in names:
                self.loaded(service, name, "large.h5")
            [rank] = service.workers()
            full = self.memory_of(rank)
            for name in names:
                self.assertEqual(service.ask("POST", f"/v1/matrices/{name}/unload").status, 200)
            service.wait_for("the end", lambda: service.get("/v1/matrices").json["matrices"] == [])
            return full, self.memory_of(rank)

        first_full, first = load_and_unload()
        full, left = load_and_unload()
        for key in ("VmSize", "VmRSS"):
            self.assertGreater(full[key] - left[key], 2.8 * MATRIX_BYTES, (full, left))
        # One of the six matrices would add MATRIX_BYTES. The stack of a thread that still ends is 8 MiB of addresses.
        self.assertLess(left["VmSize"] - first["VmSize"], 0.75 * MATRIX_BYTES, (first_full, first, full, left))
        self.assertLess(left["VmRSS"] - first["VmRSS"], MATRIX_BYTES / 4, (first_full, first, full, left))

    def test_the_least_recently_used_goes(self):
        service = self.limited(200 << 20)
        x = np.ones(50000)
        self.loaded(service, "a", "large.h5")
        def size_of(name):
            return service.get(f"/v1/matrices/{name}").json["ranks"][0]["device_bytes"]

        self.assertGreater(size_of("a"), MATRIX_BYTES)
        names, sizes = ["a"], {}
        while all(state == "ready" for state in self.states(service).values()):
            names.append(f"m{len(names)}")
            self.assertLess(len(names), 20)
            self.assertEqual(service.multiply("a", x).status, 200)  # a is used, and stays
            self.loaded(service, names[-1], "large.h5")
            sizes[names[-1]] = size_of(names[-1])
        states = self.states(service)
        self.assertEqual((states["a"], states[names[-1]]), ("ready", "ready"), states)
        unloaded = [name for name in names if states[name] == "unloaded"]
        gone = unloaded[0]
        if gone != "m1":  # its memory alone would not do: products of several columns are kept where they measured faster
            self.assertGreater(sizes[gone], sizes["m1"])
        evicted = service.get(f"/v1/matrices/{gone}").json
        self.assertEqual(evicted["reason"], "evicted: another matrix needed its memory")
        self.assert_problem(service.multiply(gone, x), 409, "unloaded", "load it again")
        index = {one["name"]: one["state"] for one in service.ask("POST", "/v2/repository/index").json}
        self.assertEqual((index[gone], index["a"]), ("UNAVAILABLE", "READY"))
        schema = load_schema("service")
        self.assertEqual(faults(self.json_of("client", "status", "--state", service.state), schema, schema), [])
        # Pinned matrices stay, and whoever needs their memory is told what is missing.
        for name, state in states.items():
            if state == "ready":
                self.assertEqual(service.ask("POST", f"/v1/matrices/{name}/pin", '{"pinned": true}').json["pinned"], True)
        # They differ in size, because products of several columns are kept where they measured faster: some may still fit.
        for i in range(5):
            answer = service.load(f"p{i}", "large.h5", pinned=True)
            if answer.status != 200:
                break
        self.assert_problem(answer, 507, "no_memory", "rank 0 lacks")
        self.assertIn("the 0 matrices that are idle and not pinned have 0 B there", answer.json["error"])
        # Both do not fit, so the old one stays.
        answer = service.load("a", "large.h5", updatable=True)
        self.assert_problem(answer, 507, "no_memory", "a keeps its memory until the new one is ready")
        self.assertEqual(service.multiply("a", x).status, 200)
        self.assertEqual(service.get("/v1/matrices/a").json["replacement"]["state"], "failed")
        self.assertEqual(faults(self.json_of("client", "status", "--state", service.state), schema, schema), [])
        self.assertEqual(service.ask("POST", "/v1/matrices/a/pin", '{"pinned": false}').status, 200)
        for i in range(20):  # a has at least what one of these takes, whatever is kept for products of several columns
            answer = service.load(f"s{i}", "half.h5", type="f32")
            self.assertEqual(answer.status, 200, answer.json)
            if self.states(service)["a"] == "unloaded":
                break
        self.assertEqual(self.states(service)["a"], "unloaded")
        self.assertEqual(service.get("/v1/ranks").json["restarts"], 0)
        os.kill(service.workers()[0], signal.SIGKILL)
        service.wait_for("the restart", lambda: service.get("/v1/ranks").json["restarts"] == 1)
        service.wait_until_ready()
        self.assertEqual(self.states(service)["a"], "unloaded")  # it is not loaded by itself
        self.assertEqual(service.terminate(), OK, service.report())


class LongAnswers(ServiceTest):
    """Answers in JSON for which the service itself, not its ranks, has no memory."""

    rows = {"medium": 100_000, "long": 1_000_000, "longest": 3_000_000}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, rows in cls.rows.items():
            entries = np.arange(rows)
            write_binsparse(cls.library / f"{name}.h5", sp.csr_matrix((entries / 7, (entries, entries % 3)), shape=(rows, 3)))

    def test_they_are_refused_and_end_nothing(self):
        service = self.start("--arena", "64MiB")
        process = service.process.pid
        for name in self.rows:
            self.loaded(service, name, f"{name}.h5")
        x = np.array([1.5, -2.0, 3.25])
        request = json.dumps({"inputs": [{"name": "x", "datatype": "FP64", "shape": [3], "data": x.tolist()}]})

        def ask(name):
            return service.ask("POST", f"/v2/models/{name}/infer", request)

        def check(name, answer):
            self.assertEqual(answer.status, 200, answer.status)
            entries = np.arange(self.rows[name])
            np.testing.assert_allclose(answer.json["outputs"][0]["data"], entries / 7 * x[entries % 3], rtol=1e-14)

        check("medium", ask("medium"))  # its threads are there
        # Of "long" the allocator may still have room for the numbers, and none for the answer; of "longest" for neither.
        rooms = [("long", room) for room in (1, 8, 24, 30, 38, 46, 60, 80)] + [("longest", room) for room in (1, 40, 80, 100)]
        for name, mebibytes in rooms:
            with self.subTest(name=name, room=mebibytes):
                with open(f"/proc/{process}/status") as status:
                    [size] = [int(line.split()[1]) << 10 for line in status if line.startswith("VmSize:")]
                resource.prlimit(process, resource.RLIMIT_AS, (size + (mebibytes << 20), resource.RLIM_INFINITY))
                answer = ask(name)
                resource.prlimit(process, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
                if mebibytes == 1 or answer.status != 200:
                    self.assert_problem(answer, 507, "no_memory", "short of memory")
                else:
                    check(name, answer)
                check("medium", ask("medium"))
        check("long", ask("long"))
        self.assertEqual(service.get("/v1/ranks").json["restarts"], 0)
        self.assertEqual(service.get("/v1/ranks").json["arena"]["used"], 0)
        self.assertEqual(service.terminate(), OK, service.report())


class Replacement(ServiceTest):
    def setUp(self):
        super().setUp()
        self.double = sp.csr_matrix(2 * self.matrix)
        write_binsparse(self.library / "double.h5", self.double)
        self.service = self.start("--ranks", 2)
        self.loaded(self.service)

    def test_the_new_matrix_takes_the_name(self):
        service, x = self.service, self.vector(1)[0]
        before = service.multiply("bar", x)
        generation = int(before.headers["Shardmat-Generation"])
        self.assert_problem(service.load("bar", "bar.h5"), 409, "loaded", "from this source")
        waiting = self.enterContext(service.open())  # its body comes after the replacement
        waiting.sendall(b"POST /v1/matrices/bar/multiply HTTP/1.1\r\nHost: a\r\nContent-Length: 7800\r\n\r\n" + x.tobytes()[:100])
        service.wait_for("the first request", lambda: service.get("/v1/ranks").json["arena"]["used"] > 0)
        wrong, stop = [], threading.Event()

        def client():
            connection = service.connection()
            while not stop.is_set():
                answer = service.multiply("bar", x, connection=connection)
                if answer.status != 200:
                    wrong.append(str(answer))
            connection.close()

        thread = threading.Thread(target=client)
        thread.start()
        try:
            replaced = self.loaded(service, "bar", "double.h5")
        finally:
            stop.set()
            thread.join()
        self.assertEqual(wrong, [])
        self.assertGreater(replaced["generation"], generation)
        self.assertEqual(replaced["source"], "double.h5")
        after = service.multiply("bar", x)
        np.testing.assert_allclose(self.y_of(after), 2 * self.y_of(before), rtol=1e-12, atol=1e-12)
        self.assertEqual(after.headers["Shardmat-Generation"], str(replaced["generation"]))
        waiting.sendall(x.tobytes()[100:])
        self.assertIn(b"200 OK", waiting.recv(65536))
        # Without a wait, too; and a type of another size does not fit the body that was announced.
        late = self.enterContext(service.open())
        late.sendall(b"POST /v1/matrices/bar/multiply HTTP/1.1\r\nHost: a\r\nContent-Length: 7800\r\n\r\n" + x.tobytes()[:100])
        service.wait_for("the request", lambda: service.get("/v1/ranks").json["arena"]["used"] > 0)
        answer = service.ask("POST", "/v1/matrices/bar/load", '{"source": "bar.h5", "type": "f32"}')
        self.assertEqual((answer.status, answer.json["state"], answer.json["replacement"]["state"]), (202, "ready", "loading"))
        service.wait_for("the replacement", lambda: service.get("/v1/matrices/bar").json["type"] == "f32")
        late.sendall(x.tobytes()[100:])
        self.assertIn(b'"code":"changed"', late.recv(65536))
        self.assertEqual(service.multiply("bar", self.vector(1, "f32")[0]).status, 200)
        self.assertEqual(service.terminate(), OK, service.report())

    def test_a_replacement_that_fails_changes_nothing(self):
        service, x = self.service, self.vector(1)[0]
        before = service.multiply("bar", x)
        self.assert_problem(service.load("bar", "none.h5"), 422, "bad_matrix", "no such file")
        described = service.get("/v1/matrices/bar").json
        self.assertEqual((described["state"], described["source"]), ("ready", "bar.h5"))
        self.assertEqual((described["replacement"]["state"], described["replacement"]["source"]), ("failed", "none.h5"))
        after = service.multiply("bar", x)
        self.assertEqual((after.body, after.headers["Shardmat-Generation"]), (before.body, before.headers["Shardmat-Generation"]))
        self.assertEqual(service.load("bar", "double.h5").status, 200)
        self.assertNotIn("replacement", service.get("/v1/matrices/bar").json)
        os.kill(service.workers()[0], signal.SIGKILL)
        service.wait_for("the restart", lambda: service.get("/v1/ranks").json["restarts"] == 1)
        service.wait_until_ready()
        self.assertEqual(service.get("/v1/matrices/bar").json["source"], "double.h5")

    def test_pins_are_kept(self):
        service = self.service
        self.assertFalse(service.get("/v1/matrices/bar").json["pinned"])
        self.assert_problem(service.ask("POST", "/v1/matrices/none/pin", '{"pinned": true}'), 404, "no_matrix")
        self.assert_problem(service.ask("POST", "/v1/matrices/bar/pin", '{"pin": true}'), 400, "malformed", "pinned")
        self.succeed("client", "load", "other", "bar.h5", "--pinned", "--state", service.state)
        self.assertTrue(service.ask("POST", "/v1/matrices/bar/pin", '{"pinned": true}').json["pinned"])
        self.assertTrue(self.loaded(service, "bar", "double.h5")["pinned"])  # a replacement inherits it
        self.assertEqual(service.terminate(), OK)
        again = self.start("--ranks", 2)
        self.assertEqual({one["name"]: one["pinned"] for one in again.get("/v1/matrices").json["matrices"]}, {"bar": True, "other": True})


if __name__ == "__main__":
    unittest.main()
