"""Memory that a client shares with the ranks: its vectors are not copied through the socket."""

import array
import fcntl
import json
import mmap
import os
import pathlib
import re
import resource
import signal
import socket
import threading
import unittest

import numpy as np
import scipy.sparse as sp

from support import OK, write_binsparse
from test_serve import NAMES, ServiceTest

CLIENT_MEMORY = "memfd:shardmat-client"
GIB = 1 << 30


class Shared:
    """A connection with memory of its own."""

    def __init__(self, service, bytes):
        self.service = service
        self.connection = service.connection()
        self.connection.connect()
        self.answer, self.descriptor = self.ask_for(bytes)
        self.map = mmap.mmap(self.descriptor, 0) if self.descriptor is not None else None

    def ask_for(self, bytes):
        """Status and JSON of the reply, and the descriptor that came with its first byte."""
        client = self.connection.sock
        client.sendall(f"POST /v1/memory?bytes={bytes} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        reply, ancillary, _, _ = client.recvmsg(1, socket.CMSG_SPACE(4))
        while b"\r\n\r\n" not in reply:
            reply += client.recv(65536)
        head, body = reply.split(b"\r\n\r\n", 1)
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length:"))
        while len(body) < length:
            body += client.recv(65536)
        descriptors = array.array("i")
        for level, type, data in ancillary:
            assert (level, type) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
            descriptors.frombytes(data[:4])
        return (int(head.split()[1]), json.loads(body)), descriptors[0] if descriptors else None

    def put(self, at, values):
        self.map[at:at + values.nbytes] = values.tobytes()

    def get(self, at, bytes):
        return self.map[at:at + bytes]

    def multiply(self, query, body=None, name="bar"):
        return self.service.ask("POST", f"/v1/matrices/{name}/multiply?{query}", body, self.connection)

    def close(self):
        if self.map is not None:
            self.map.close()
            os.close(self.descriptor)
            self.map = None
        self.connection.close()


class SharedTest(ServiceTest):
    def shared(self, service, bytes=1 << 20):
        one = Shared(service, bytes)
        self.addCleanup(one.close)
        self.assertEqual(one.answer[0], 201, one.answer)
        return one

    def written(self, answer):
        self.assertEqual((answer.status, answer.body), (204, b""), answer)

    def maps(self, pid):
        """How many memories of clients a process has mapped."""
        return pathlib.Path(f"/proc/{pid}/maps").read_text().count(CLIENT_MEMORY)

    def virtual_bytes(self, pid):
        return int(re.search(r"VmSize:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) << 10

    def descriptors(self, pid):
        return len(os.listdir(f"/proc/{pid}/fd"))


class Products(SharedTest):
    def test_bits_are_those_of_a_body(self):
        for ranks in (1, 2):
            service = self.start("--ranks", ranks)
            for type in ("f64", "f32"):
                with self.subTest(ranks=ranks, type=type):
                    self.loaded(service, "m", type=type)
                    own = self.shared(service)
                    x, y = self.vector(1, type, 3), self.vector(2, type, 3)
                    x_at, y_at = x.itemsize * 5, x.itemsize * 4001
                    own.put(x_at, x)
                    for query, body in (("alpha=2", x[0]), ("k=3", x)):
                        expected = service.multiply("m", body, "?" + query).body
                        answer = own.multiply(f"{query}&x_at={x_at}&y_at={y_at}", name="m")
                        self.written(answer)
                        self.assertEqual(own.get(y_at, len(expected)), expected)
                        for field in ("Shardmat-Shape", "Shardmat-Type", "Shardmat-Batch", "Shardmat-Generation", "Server-Timing"):
                            self.assertIn(field, answer.headers)
                        self.assertEqual(own.multiply(f"{query}&x_at={x_at}", name="m").body, expected)  # y is the body
                        own.put(y_at, np.zeros_like(body))
                        self.written(own.multiply(f"{query}&y_at={y_at}", body.tobytes(), "m"))  # x is the body
                        self.assertEqual(own.get(y_at, len(expected)), expected)
                    both = service.multiply("m", np.concatenate([x, y]), "?k=3&alpha=0.3&beta=-0.7").body
                    own.put(y_at, y)
                    self.written(own.multiply(f"k=3&alpha=0.3&beta=-0.7&x_at={x_at}&y_at={y_at}", name="m"))
                    self.assertEqual(own.get(y_at, y.nbytes), both)
                    self.assertEqual(own.multiply(f"k=3&alpha=0.3&beta=-0.7&x_at={x_at}", y.tobytes(), "m").body, both)
                    self.assertEqual(own.get(x_at, x.nbytes), x.tobytes())
                    self.assertEqual(service.ask("POST", "/v1/matrices/m/unload").status, 200)
            self.assertEqual(service.get("/v1/ranks").json["arena"]["used"], 0)
            self.assertEqual(service.terminate(), OK, service.report())

    def test_vectors_that_stay_take_the_other_place(self):
        service = self.start("--ranks", 2)
        self.loaded(service)
        for columns in (1, 3):
            x = self.vector(3, columns=columns)
            expected = service.multiply("bar", x, f"?k={columns}").body
            vector, result = (service.ask("POST", "/v1/vectors", json.dumps({"matrix": "bar", "columns": columns})).json["id"] for _ in "xy")
            self.assertEqual(service.ask("PUT", f"/v1/vectors/{vector}", x.tobytes(), Content_Type="application/octet-stream").status, 204)
            own = self.shared(service)
            own.put(0, x)
            self.written(own.multiply(f"x={vector}&y_at=32768"))
            self.assertEqual(own.get(32768, x.nbytes), expected)
            self.written(own.multiply(f"x_at=0&y={result}"))
            self.assertEqual(service.get(f"/v1/vectors/{result}").body, expected)

    def test_merged_products_keep_their_bits_and_their_memories(self):
        """One client writes into its x and y meanwhile, one leaves during products: the others notice nothing."""
        service = self.start("--ranks", 2)
        self.loaded(service)
        x = self.vector(4, columns=12)
        expected = [service.multiply("bar", column).body for column in x]
        shared = [self.shared(service, 1 << 16) for _ in x]
        wrong, merged, ended = [], [], threading.Event()

        def writer():
            noise = np.random.default_rng(1).bytes(1 << 15)
            while not ended.is_set():
                shared[1].map[:1 << 15] = noise
                shared[1].map[:1 << 15] = b"\xff" * (1 << 15)

        def leaver():
            own = Shared(service, 1 << 16)
            own.put(0, np.full_like(x[0], np.nan))
            own.connection.sock.sendall(b"POST /v1/matrices/bar/multiply?x_at=0&y_at=16384 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            own.close()

        def client(number):
            own = shared[number]
            for turn in range(15):
                which = (number + turn) % len(x)
                if number == 2:
                    leaver()
                    continue
                own.put(0, x[which])
                if number % 4 == 3:  # with a body
                    answer = service.multiply("bar", x[which], connection=own.connection)
                    right = answer.status == 200 and answer.body == expected[which]
                else:
                    answer = own.multiply("x_at=0&y_at=16384")
                    right = answer.status == 204 and (number == 1 or own.get(16384, x[0].nbytes) == expected[which])
                if not right:
                    wrong.append(f"{number} {turn} {answer}")
                merged.append(int(answer.headers["Shardmat-Batch"].split("/")[0]))

        noise = threading.Thread(target=writer)
        noise.start()
        try:
            service.at_once_behind_ranks("bar", len(x), client)
        finally:
            ended.set()
            noise.join()
        self.assertEqual(wrong, [])
        self.assertEqual(len(merged), 15 * (len(x) - 1))
        self.assertGreater(max(merged), 1)
        self.assertEqual(service.get("/v1/ranks").json["restarts"], 0)
        self.assertEqual(service.terminate(), OK, service.report())


class Refusals(SharedTest):
    def test_places_and_sizes(self):
        service = self.start("--ranks", 1, "--arena", 16 << 20, "--listen", "127.0.0.1:0", "--no-token")
        self.loaded(service)
        n = self.matrix.shape[0] * 8
        tcp, plain = service.tcp_connection(), service.connection()
        self.addCleanup(tcp.close)
        self.addCleanup(plain.close)
        self.assert_problem(service.ask("POST", "/v1/memory?bytes=4096", connection=tcp), 403, "unix_only")
        self.assert_problem(service.ask("POST", "/v1/matrices/bar/multiply?x_at=0&y_at=8192", connection=tcp), 409, "no_shared_memory",
                            "shared only with programs on the host of the service")
        self.assert_problem(service.ask("POST", "/v1/matrices/bar/multiply?x_at=0&y_at=8192", connection=plain), 409, "no_shared_memory")
        for query in ("", "?bytes=0", "?bytes=-1", "?bytes=9223372036854775808", "?bytes=1e3", "?bytes=8&more=1", "?size=8"):
            self.assert_problem(service.ask("POST", "/v1/memory" + query, connection=plain), 400, "malformed")
        self.assert_problem(service.ask("POST", f"/v1/memory?bytes={2**63 - 1}", connection=plain), 413, "memory_too_large")
        own = self.shared(service, 3 * n + 1)
        size = own.answer[1]["bytes"]
        self.assertEqual(size % mmap.PAGESIZE, 0)
        self.assertEqual((size, os.fstat(own.descriptor).st_size), (len(own.map), size))
        self.assertEqual(own.get(0, size), bytes(size))
        answer, descriptor = own.ask_for(8)
        self.assertEqual((answer[0], answer[1]["code"], descriptor), (409, "has_memory", None))
        self.assert_problem(service.ask("POST", f"/v1/memory?bytes={16 << 20}", connection=plain), 507, "memory_full", str(size))
        for x_at, y_at, code in ((4, n, "misaligned"), (0, n + 1, "misaligned"), (size, 0, "outside_memory"), (0, size - n + 8, "outside_memory"),
                                 (2**63 - 8, 0, "outside_memory"), (0, 2**63 - 8, "outside_memory"), (0, 0, "overlap"), (0, n - 8, "overlap"),
                                 (n, 8, "overlap")):
            with self.subTest(x_at=x_at, y_at=y_at):
                self.assert_problem(own.multiply(f"x_at={x_at}&y_at={y_at}"), 422, code)
        for query in (f"x_at={2**63}&y_at=0", f"x_at=0&y_at={2**64}", "x_at=-8&y_at=0", "x_at=&y_at=0", "x_at=0&x=vec-1", "x_at=0x8"):
            self.assert_problem(own.multiply(query), 400, "malformed")
        self.assert_problem(own.multiply(f"x_at=0&y_at={n}", bytes(n)), 422, "wrong_length")
        self.assert_problem(own.multiply(f"k=2&x_at=0&y_at={2 * n}"), 422, "outside_memory")
        self.assertEqual(own.get(0, size), bytes(size))
        last = (size - n) // 8 * 8
        self.written(own.multiply(f"x_at=0&y_at={last}"))  # the last place that there is
        self.assertEqual(service.terminate(), OK, service.report())

    def test_a_client_has_its_own_bytes_alone_and_cannot_resize_them(self):
        service = self.start("--ranks", 2)
        self.loaded(service)
        first, second = self.shared(service), self.shared(service)
        self.assertNotEqual(os.fstat(first.descriptor).st_ino, os.fstat(second.descriptor).st_ino)
        x = self.vector(5)[0]
        first.put(0, x)
        self.written(first.multiply("x_at=0&y_at=32768"))
        self.written(second.multiply("x_at=0&y_at=32768"))
        self.assertEqual(first.get(32768, x.nbytes), service.multiply("bar", x).body)
        self.assertEqual(second.get(0, 1 << 20), bytes(1 << 20))
        service.multiply("bar", x)  # nor what lies in the arena
        self.assertEqual(second.get(0, 1 << 20), bytes(1 << 20))
        for size in (0, 4096, 1 << 21):
            with self.assertRaises(PermissionError):
                os.ftruncate(first.descriptor, size)
        with self.assertRaises(PermissionError):
            fcntl.fcntl(first.descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
        sealed = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
        self.assertEqual(fcntl.fcntl(first.descriptor, fcntl.F_GET_SEALS), sealed)


class Ends(SharedTest):
    def test_nothing_is_left_behind_when_connections_end(self):
        service = self.start("--ranks", 2)
        self.loaded(service)
        processes = [service.process.pid, *service.workers()]
        self.assertEqual(len(processes), 3)
        x = self.vector(6)[0]
        expected = service.multiply("bar", x).body
        before = [self.descriptors(pid) for pid in processes]
        for turn in range(40):
            own = self.shared(service, 1 << 20)
            own.put(0, x)
            if turn % 4 == 0:
                self.written(own.multiply("x_at=0&y_at=32768"))
            else:  # the client leaves while its product waits or runs
                own.connection.sock.sendall(b"POST /v1/matrices/bar/multiply?k=32&x_at=0&y_at=524288 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertTrue(all(self.maps(pid) > 0 for pid in processes))
            own.close()
        service.wait_for("the end of all memories", lambda: not any(self.maps(pid) for pid in processes))
        self.assertEqual(service.multiply("bar", x).body, expected)
        service.wait_for("the end of all connections", lambda: all(
            self.descriptors(pid) <= count for pid, count in zip(processes, before)))  # one may have been ending before
        self.assertEqual(service.get("/v1/ranks").json["client_memory"], {"count": 0, "bytes": 0})
        self.assertEqual(service.workers(), processes[1:])

    def test_new_ranks_have_it_too(self):
        service = self.start("--ranks", 2, "--restart-delay", 0.01)
        self.loaded(service)
        own, gone = self.shared(service), self.shared(service)
        x = self.vector(7)[0]
        own.put(0, x)
        self.written(own.multiply("x_at=0&y_at=32768"))
        expected = own.get(32768, x.nbytes)
        own.put(32768, np.zeros_like(x))
        os.kill(service.workers()[0], signal.SIGKILL)
        service.wait_for("the loss", lambda: not service.ready())
        self.assert_problem(own.multiply("x_at=0&y_at=32768"), 503, "restarting")
        gone.close()
        service.wait_until_ready()
        self.written(own.multiply("x_at=0&y_at=32768"))
        self.assertEqual(own.get(32768, x.nbytes), expected)
        self.assertEqual([self.maps(pid) for pid in service.workers()], [1, 1])
        self.assertEqual(service.get("/v1/ranks").json["client_memory"], {"count": 1, "bytes": 1 << 20})
        self.assertEqual(service.terminate(), OK, service.report())

    def test_ranks_that_cannot_map_it_say_so(self):
        limit, launcher = pathlib.Path(self.path("limit")), pathlib.Path(self.path("launcher"))
        launcher.write_text(f"#!/bin/sh\nif [ -f {limit} ]; then ulimit -v $(cat {limit}); fi\nexec mpirun \"$@\"\n")
        launcher.chmod(0o700)
        service = self.start("--launcher", f"{launcher} -n 2", "--arena", GIB, "--restart-delay", 0.01)
        self.loaded(service)
        x = self.vector(8)[0]
        expected = service.multiply("bar", x).body
        plain = max(self.virtual_bytes(pid) for pid in service.workers())
        one = service.workers()[0]
        for kind, most in ((resource.RLIMIT_AS, plain + GIB // 2), (resource.RLIMIT_NOFILE, 3)):
            before = resource.prlimit(one, kind)
            resource.prlimit(one, kind, (most, before[1]))
            own = Shared(service, GIB)
            self.assertEqual((own.answer[0], own.answer[1]["code"], own.descriptor), (507, "no_memory", None))
            resource.prlimit(one, kind, before)
            own.answer, own.descriptor = own.ask_for(GIB)  # the same connection may try again
            self.assertEqual(own.answer[0], 201, own.answer)
            own.close()
            os.close(own.descriptor)
            service.wait_for("its end", lambda: not any(self.maps(pid) for pid in service.workers()))
        own = self.shared(service, GIB)
        limit.write_text(str((plain + GIB // 2) >> 10))
        os.kill(one, signal.SIGKILL)
        service.wait_for("the loss", lambda: not service.ready())
        service.wait_until_ready()
        self.assert_problem(own.multiply("x_at=0&y_at=32768"), 410, "memory_lost")
        self.assertEqual(own.multiply("k=1", x.tobytes()).body, expected)
        answer, descriptor = own.ask_for(1 << 20)  # another one, which they can map
        os.close(descriptor)
        self.assertEqual(answer, (201, {"bytes": 1 << 20}))
        self.written(own.multiply("x_at=0&y_at=32768"))
        self.assertEqual(service.terminate(), OK, service.report())



class Solves(SharedTest):
    """b, the first x and the last one of jobs in the memory of their connection."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        size = 500
        cls.line = sp.diags([-1, 2.1, -1], [-1, 0, 1], (size, size)).tocsr()
        write_binsparse(cls.library / "line.h5", cls.line)
        write_binsparse(cls.library / "links.h5", abs(cls.line))

    QUERY = "/v1/matrices/line/solve?method=cg&preconditioner=jacobi&alone=1&keep=1&wait=60"

    def test_x_has_the_bits_of_bodies(self):
        for ranks in (1, 2, 3):
            service = self.start("--ranks", ranks, state=f"state{ranks}")
            for type in ("f64", "f32"):
                self.loaded(service, "line", "line.h5", type=type, solvable=True)
                own = self.shared(service)
                b = np.random.default_rng(ranks).uniform(-1, 1, (2, 500)).astype(NAMES[type])
                own.put(4096, b)
                for k in (1, 2):
                    expected = service.ask("POST", self.QUERY + f"&k={k}", b[:k].tobytes(), Content_Type="application/octet-stream")
                    answer = service.ask("POST", self.QUERY + f"&k={k}&b_at=4096", connection=own.connection)
                    self.assertEqual((answer.status, answer.body), (200, expected.body), answer)
                    own.put(65536, np.frombuffer(answer.body, NAMES[type]))
                    again = service.ask("POST", self.QUERY + f"&k={k}&x0_at=65536", b[:k].tobytes(), own.connection,
                                        Content_Type="application/octet-stream")
                    self.assertEqual((again.status, again.body, again.headers["Shardmat-Iterations"]), (200, answer.body, "0"), again)
                    both = service.ask("POST", self.QUERY + f"&k={k}&b_at=4096&x0_at=65536", connection=own.connection)
                    self.assertEqual((both.status, both.body), (200, answer.body), both)
                own.close()
                for job in service.get("/v1/jobs").json["jobs"]:
                    self.assertEqual(service.ask("DELETE", f"/v1/jobs/{job['id']}").status, 204)
                self.assertEqual(service.ask("POST", "/v1/matrices/line/unload").status, 200)
            service.wait_for("the end of the memories", lambda: service.get("/v1/ranks").json["client_memory"] == {"count": 0, "bytes": 0})
            self.assertEqual(service.get("/v1/ranks").json["arena"]["used"], 0)
            self.assertEqual(service.terminate(), OK, service.report())

    def test_wrong_places(self):
        service = self.start("--ranks", 1)
        self.loaded(service, "line", "line.h5", solvable=True)
        own = self.shared(service, 4096)
        plain = service.connection()
        self.assert_problem(service.ask("POST", self.QUERY + "&b_at=0", connection=plain), 409, "no_shared_memory")
        for query, status, code in (("b_at=4", 422, "misaligned"), ("b_at=104", 422, "outside_memory"), ("b_at=0&x0_at=4096", 422, "outside_memory"),
                                    ("b_at=0&k=2", 422, "outside_memory"), ("b_at=0&x_at=104", 422, "outside_memory"), ("b_at=0&x_at=4", 422, "misaligned"),
                                    ("b_at=0&x_at=-8", 400, "malformed"), ("b_at=-1", 400, "malformed"), ("b_at=0&b=vec-1", 400, "malformed"),
                                    ("x0_at=x", 400, "malformed")):
            with self.subTest(query):
                self.assert_problem(service.ask("POST", f"{self.QUERY}&{query}", connection=own.connection), status, code)
        self.assert_problem(service.ask("POST", self.QUERY + "&x_at=0", connection=plain), 409, "no_shared_memory")
        for wait in ("", "&wait=0"):
            asked = service.ask("POST", self.QUERY.replace("&wait=60", wait) + "&b_at=0&x_at=0", connection=own.connection)
            self.assert_problem(asked, 400, "malformed", "x_at needs a wait above 0")
        answer = service.ask("POST", self.QUERY + "&b_at=0", b"body", own.connection)
        self.assert_problem(answer, 422, "wrong_length", "in the client's memory")
        own.put(0, np.ones(500))
        self.assertEqual(service.ask("POST", self.QUERY + "&b_at=0&x0_at=0", connection=own.connection).status, 200)

    def solve(self, own, query, body=None):
        return own.service.ask("POST", self.QUERY + query, body, own.connection, Content_Type="application/octet-stream")

    def test_x_comes_into_the_memory(self):
        for ranks in (1, 2, 3):
            service = self.start("--ranks", ranks, state=f"state{ranks}")
            for type in ("f64", "f32"):
                self.loaded(service, "line", "line.h5", type=type, solvable=True)
                self.loaded(service, "links", "links.h5", type=type, solvable=True)
                own = self.shared(service)
                b = np.random.default_rng(ranks).uniform(0.5, 1, (2, 500)).astype(NAMES[type])
                for k in (1, 2):
                    rest = own.get(65536, 1 << 16)
                    expected = self.solve(own, f"&k={k}", b[:k].tobytes())
                    answer = self.solve(own, f"&k={k}&x_at=65536", b[:k].tobytes())
                    self.written(answer)
                    self.assertEqual(own.get(65536, 1 << 16), expected.body + rest[len(expected.body):])
                    for field in ("Shardmat-Shape", "Shardmat-Type", "Shardmat-Iterations", "Shardmat-Residual"):
                        self.assertEqual(answer.headers[field], expected.headers[field])
                    own.put(4096, b[:k])
                    self.written(self.solve(own, f"&k={k}&b_at=4096&x_at=4096"))  # in place
                    self.assertEqual(own.get(4096, len(expected.body)), expected.body)
                    walk = f"/v1/matrices/links/pagerank?k={k}&wait=60"
                    scores = service.ask("POST", walk, b[:k].tobytes(), Content_Type="application/octet-stream")
                    own.put(4096, b[:k])
                    self.written(service.ask("POST", walk + "&b_at=4096&x_at=65536", connection=own.connection))
                    self.assertEqual(own.get(65536, len(scores.body)), scores.body)
                job = service.ask("POST", "/v1/matrices/line/eigen?count=3&wait=60&x_at=131072", connection=own.connection)
                self.assertEqual((job.status, job.json["state"]), (200, "done"), job)
                pairs = service.get(f"/v1/jobs/{job.json['id']}/x").body
                self.assertEqual(len(pairs), 3 * 500 * b.itemsize)
                self.assertEqual(own.get(131072, len(pairs)), pairs)
                own.close()
                for name in ("line", "links"):
                    self.assertEqual(service.ask("POST", f"/v1/matrices/{name}/unload").status, 200)
                for job in service.get("/v1/jobs").json["jobs"]:
                    self.assertEqual(service.ask("DELETE", f"/v1/jobs/{job['id']}").status, 204)
            self.assertEqual(service.get("/v1/vectors").json["vectors"], [])  # the jobs without keep left none
            self.assertEqual(service.get("/v1/ranks").json["arena"]["used"], 0)
            self.assertEqual(service.terminate(), OK, service.report())

    def test_merged_solves_go_where_each_wants(self):
        service = self.start("--ranks", 2)
        self.loaded(service, "line", "line.h5", solvable=True)
        query = "/v1/matrices/line/solve?method=cg&preconditioner=jacobi&alone=0&wait=60&b_at=0"
        shared = [self.shared(service, 1 << 16) for _ in range(4)]
        merged = []

        def client(number):
            own = shared[number]
            own.put(0, np.full(500, number + 1.0))
            in_memory = number % 2 == 0
            answer = service.ask("POST", query + "&keep=1" + ("&x_at=8192" if in_memory else ""), connection=own.connection)
            self.assertEqual(answer.status, 204 if in_memory else 200, answer)
            x = np.frombuffer(own.get(8192, 4000) if in_memory else answer.body)
            self.assertLessEqual(np.linalg.norm(number + 1 - self.line @ x), 1.01e-8 * (number + 1) * np.sqrt(500))
            merged.append(service.get(f"/v1/jobs/{answer.headers['Shardmat-Job']}").json["merged"])

        workers = service.workers()
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        threads = [threading.Thread(target=client, args=(number,)) for number in range(4)]
        for one in threads:
            one.start()
        service.wait_for("all jobs", lambda: len(service.get("/v1/jobs").json["jobs"]) == 4)
        for pid in workers:
            os.kill(pid, signal.SIGCONT)
        for one in threads:
            one.join()
        self.assertEqual(len(merged), 4)
        self.assertGreater(max(merged), 1)
        self.assertEqual(service.terminate(), OK, service.report())

    def test_nothing_is_written_after_the_wait(self):
        service = self.start("--ranks", 2)
        self.loaded(service, "line", "line.h5", solvable=True)
        own = self.shared(service)
        own.put(0, np.ones(500))
        before = own.get(0, 1 << 20)
        workers = service.workers()
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        answer = service.ask("POST", self.QUERY.replace("wait=60", "wait=0.05") + "&b_at=0&x_at=8192", connection=own.connection)
        self.assertEqual(answer.status, 202, answer)
        for pid in workers:
            os.kill(pid, signal.SIGCONT)
        path = f"/v1/jobs/{answer.json['id']}"
        service.wait_for("its end", lambda: service.get(path).json["state"] == "done")
        x = np.frombuffer(service.get(path + "/x").body)
        self.assertLessEqual(np.linalg.norm(1 - self.line @ x), 1.01e-8 * np.sqrt(500))
        self.assert_problem(self.solve(own, "&b_at=0&x_at=8192&max_iterations=1"), 422, "not_converged")
        self.assertEqual(own.get(0, 1 << 20), before)
        self.assertEqual(service.terminate(), OK, service.report())

    def test_the_memory_lasts_until_its_job_has_ended(self):
        service = self.start("--ranks", 2)
        self.loaded(service, "line", "line.h5", solvable=True)
        own = self.shared(service)
        own.put(0, np.ones(500))
        workers = service.workers()
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        ids = [service.ask("POST", self.QUERY.replace("&wait=60", "") + "&b_at=0", connection=own.connection).json["id"] for _ in range(2)]
        own.close()
        for pid in workers:
            os.kill(pid, signal.SIGCONT)
        for id in ids:
            service.wait_for("its end", lambda: service.get(f"/v1/jobs/{id}").json["state"] == "done")
            x = np.frombuffer(service.get(f"/v1/jobs/{id}/x").body)
            self.assertLessEqual(np.linalg.norm(1 - self.line @ x), 1.01e-8 * np.sqrt(500))
        service.wait_for("the end of the memory", lambda: service.get("/v1/ranks").json["client_memory"] == {"count": 0, "bytes": 0})
        self.assertEqual(service.terminate(), OK, service.report())

if __name__ == "__main__":
    unittest.main()
