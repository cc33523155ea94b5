"""What the service tells about itself: figures for Prometheus, the access log, events."""

import json
import os
import re
import signal
import unittest

from service import read_all
from support import BACKEND
from test_serve import ServiceTest

SAMPLE = re.compile(r'^([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)*)\})? (\S+)$')


def figures(text):
    """{(name, labels): value}; every line must have the format, and every name a type before its samples."""
    types, samples = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name not in types and kind in ("counter", "gauge", "histogram"), line
            types[name] = kind
        elif not line.startswith("# HELP "):
            match = SAMPLE.match(line)
            assert match, line
            name, labels, value = match[1], tuple(re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', match[2] or "")), float(match[3])
            family = next((n for n in (name, re.sub("_(bucket|sum|count)$", "", name)) if n in types), None)
            assert family and (name, labels) not in samples, line
            samples[name, labels] = value
    return samples


def events_of(data):
    """[(type, data)] of a stream."""
    found = []
    for block in data.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line and not line.startswith(":"))
        if "event" in fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found


class ObserveTest(ServiceTest):
    def figures(self, service):
        answer = service.get("/metrics")
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
        return figures(answer.body.decode())

    def listen(self, service):
        client = service.open()
        client.sendall(b"GET /v1/events HTTP/1.1\r\nHost: a\r\n\r\n")
        return client

    def read_until(self, client, text):
        data = b""
        while text not in data:
            more = client.recv(65536)
            self.assertTrue(more, data)
            data += more
        return data


class Figures(ObserveTest):
    def test_they_count_what_happened(self):
        service = self.start("--ranks", 2, "--arena", "1MiB")
        self.assertEqual(self.figures(service)["shardmat_ready", ()], 1)
        self.loaded(service)
        x = self.vector(1)[0]
        for _ in range(5):
            service.multiply("bar", x)
        service.multiply("bar", x[1:])
        for name in ("none", "other", "third"):
            service.multiply(name, x)
        service.get("/nothing")
        found = self.figures(service)
        count = lambda matrix, op, code: found.get(("shardmat_requests_total", (("matrix", matrix), ("op", op), ("code", str(code)))))
        self.assertEqual(count("bar", "multiply", 200), 5)
        self.assertEqual(count("bar", "multiply", 422), 1)
        self.assertEqual(count("", "multiply", 404), 3)
        self.assertEqual(count("", "none", 404), 1)
        self.assertEqual(count("bar", "load", 200), 1)
        self.assertFalse([labels for _, labels in found if ("matrix", "none") in labels])
        bar = (("matrix", "bar"),)
        self.assertEqual(found["shardmat_queue_seconds_count", bar], 5)
        self.assertEqual(found["shardmat_product_seconds_count", bar], 5)
        self.assertEqual(found["shardmat_batch_columns_sum", bar], 5)
        self.assertEqual(found["shardmat_batch_columns_bucket", bar + (("le", "1"),)], 5)
        self.assertEqual(found["shardmat_queue_depth", bar], 0)
        self.assertEqual(found["shardmat_copy_bytes_total", (("direction", "in"),)], 5 * x.nbytes)
        self.assertEqual(found["shardmat_request_seconds_bucket", (("op", "multiply"), ("le", "+Inf"))], 9)
        self.assertEqual(found["shardmat_arena_bytes", (("kind", "all"),)], 1 << 20)
        self.assertGreater(found["shardmat_matrix_bytes", bar], 0)
        self.assertEqual(found["shardmat_matrix_bytes", bar], sum(v for (name, _), v in found.items() if name == "shardmat_device_bytes"))
        self.assertEqual([v for (name, _), v in found.items() if name == "shardmat_rank_up"], [1, 1])
        self.assertGreater(found["shardmat_engine_busy_seconds_total", ()], 0)
        self.assertGreater(found["process_resident_memory_bytes", ()], 0)
        self.assertGreater(found["process_open_fds", ()], 5)

    def test_states_memory_connections_and_the_build(self):
        service = self.start("--ranks", 2, "--connections", 40)
        found = self.figures(service)
        for reason in ("arena_full", "busy", "too_many_connections", "too_many_jobs"):  # there before the first one, so that it is seen as a rise
            self.assertEqual(found["shardmat_rejected_total", (("reason", reason),)], 0)
        self.loaded(service, solvable=True)
        self.assertEqual(service.load("bad", "none.h5").status, 422)
        service.multiply("bar", self.vector(1)[0])
        solve = lambda query: service.ask("POST", "/v1/matrices/bar/solve?wait=60&" + query, self.vector(2)[0].tobytes(),
                                          Content_Type="application/octet-stream")
        self.assertEqual(solve("rtol=1e-3&keep=1").status, 200)
        self.assertEqual(solve("rtol=1e-14&max_iterations=1").status, 422)
        with service.open():
            found = self.figures(service)
        states = lambda name: {labels[0][1]: value for (one, labels), value in found.items() if one == name}
        self.assertEqual(states("shardmat_matrices"), {"loading": 0, "ready": 1, "failed": 1, "unloaded": 0, "values_lost": 0})
        self.assertEqual(states("shardmat_jobs"), {"queued": 0, "running": 0, "done": 1, "failed": 1, "cancelled": 0})
        self.assertEqual(states("shardmat_ended_jobs_total"), {"done": 1, "failed": 1, "cancelled": 0})
        self.assertGreaterEqual(found["shardmat_open_connections", (("door", "unix"),)], 2)
        self.assertEqual(found["shardmat_open_connections", (("door", "address"),)], 0)
        self.assertEqual(found["shardmat_max_connections", ()], 40)
        self.assertEqual(found["shardmat_token_queue_depth", (("token", "unix"),)], 0)
        self.assertGreater(found["shardmat_product_bytes_total", (("matrix", "bar"),)], 8 * self.matrix.nnz)
        for rank, told in enumerate(service.get("/v1/ranks").json["ranks"]):
            label = ("rank", str(rank))
            self.assertEqual(found["shardmat_device_memory_bytes", (label,)], told["memory_bytes"])
            self.assertEqual(found["shardmat_rank_info", (label, ("host", told["host"]), ("device", told["device"]))], 1)
            for kind in ("matrices", "solvers", "vectors"):
                self.assertGreater(found["shardmat_device_held_bytes", (label, ("kind", kind))], 0, kind)
        version = json.loads(self.succeed("--version", "--json").out)
        build = (("version", version["version"]), ("commit", version["commit"]), ("backend", BACKEND))
        self.assertEqual(found["shardmat_build_info", build], 1)
        self.assertFalse(states("shardmat_certificate_expiry_timestamp_seconds"))

    def test_a_lost_rank_is_counted(self):
        service = self.start("--ranks", 2)
        os.kill(service.workers()[0], signal.SIGKILL)
        service.wait_for("the restart", lambda: service.get("/v1/ranks").json["restarts"] == 1)
        service.wait_until_ready()
        found = self.figures(service)
        self.assertEqual((found["shardmat_rank_lost_total", ()], found["shardmat_restarts_total", ()]), (1, 1))


class AccessLog(ObserveTest):
    def test_one_line_a_request(self):
        log = self.path("access.log")
        service = self.start("--access-log", log)
        self.loaded(service)
        trace = "0af7651916cd43dd8448eb211c80319c"
        x = self.vector(1)[0]
        service.multiply("bar", x, X_Request_Id="first", traceparent=f"00-{trace}-b7ad6b7169203331-01")
        service.multiply("none", x, X_Request_Id="second", traceparent="00-x")
        service.raw(b"nonsense\r\n\r\n")
        lines = lambda: [json.loads(line) for line in log.read_text().splitlines()]
        service.wait_for("the last line", lambda: any(line["status"] == 400 for line in lines()))
        first, second, third = lines()[-3:]
        self.assertEqual((first["request_id"], first["trace_id"], first["method"], first["path"], first["status"], first["token"]),
                         ("first", trace, "POST", "/v1/matrices/bar/multiply", 200, "unix"))
        self.assertEqual((first["bytes_in"], first["bytes_out"], first["client"]), (x.nbytes, x.nbytes, "unix"))
        # One column; a product of two serves it if that was measured to be faster.
        self.assertRegex(first["batch"], r"^1/[1-9]\d*$")
        self.assertRegex(first["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        for key in ("seconds", "queue_seconds", "copy_seconds", "product_seconds"):
            self.assertGreaterEqual(first[key], 0)
        self.assertEqual((second["request_id"], second["status"], second["code"]), ("second", 404, "no_matrix"))
        self.assertNotIn("trace_id", second)
        self.assertEqual((third["status"], third["code"], third["path"]), (400, "malformed", ""))
        log.rename(self.path("old.log"))
        service.hang_up("access log read again")
        service.get("/v1/ranks")
        service.wait_for("a line in the new file", lambda: "/v1/ranks" in log.read_text())

    def test_to_standard_output(self):
        service = self.start("--access-log", "-")
        service.wait_for("a line", lambda: '"path":"/v2/health/ready"' in service.report())

    def test_a_file_that_cannot_be_written_is_named(self):
        result = self.call("serve", "--library", self.library, "--state", self.path("state"), "--access-log", self.path("no/such"))
        self.assertEqual(result.code, 4, result)
        self.assertIn("--access-log", result.err)


class EventStream(ObserveTest):
    def test_matrices_and_ranks(self):
        service = self.start("--ranks", 2)
        with self.listen(service) as client:
            data = self.read_until(client, b"event: service")
            self.assertIn(b"Content-Type: text/event-stream\r\n", data)
            self.loaded(service)
            service.load("bad", "none.h5")
            os.kill(service.workers()[0], signal.SIGKILL)
            data = self.read_until(client, b"event: ready")
            service.ask("POST", "/v1/matrices/bar/unload")
            data += self.read_until(client, b'"unloaded"')
            self.assertEqual(service.terminate(), 0)
            data += read_all(client)  # ends with the service
        told = [(kind, fields.get("name"), fields.get("state")) for kind, fields in events_of(data)]
        self.assertEqual(told, [("matrix", "bar", "loading"), ("matrix", "bar", "ready"), ("matrix", "bad", "loading"), ("matrix", "bad", "failed"),
                                ("rank_lost", None, None), ("matrix", "bar", "loading"), ("matrix", "bar", "ready"), ("ready", None, None),
                                ("matrix", "bar", "unloaded")])
        lost = dict(events_of(data))["rank_lost"]
        self.assertIn(lost["rank"], (0, 1))
        self.assertTrue(lost["reason"])

    def test_listeners_that_leave_or_sleep_cost_nothing(self):
        service = self.start()
        for _ in range(20):
            with self.listen(service) as client:
                self.read_until(client, b"event: service")
        sleeper = self.listen(service)  # never reads
        self.addCleanup(sleeper.close)
        self.loaded(service)
        for _ in range(3):
            service.ask("POST", "/v1/matrices/bar/unload")
            self.loaded(service)
        self.assertEqual(service.multiply("bar", self.vector(1)[0]).status, 200)
        self.assertEqual(service.terminate(), 0, service.report())


if __name__ == "__main__":
    unittest.main()
