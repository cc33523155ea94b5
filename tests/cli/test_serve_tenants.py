"""Tokens as tenants of the service: whose vectors and bytes are whose, what SIGHUP changes, and what web pages and clients of
older HTTP may do."""

import json
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import unittest

import numpy as np

from service import read_all
from support import LIMIT
from test_serve_door import GET, LISTEN, DoorTest

ALL = ["read", "multiply", "vectors"]


class TenantTest(DoorTest):
    def make(self, service, token, **what):
        answer = self.ask(service, "POST", "/v1/vectors", json.dumps(what), token)
        self.assertEqual(answer.status, 201, answer)
        return answer.json["id"]

    def held(self, service, token):
        figures = self.ask(service, "GET", "/v1/ranks", token=token).json["token"]
        return figures["vector_bytes"], figures["request_bytes"]


class Vectors(TenantTest):
    def test_a_vector_exists_for_its_owner_alone(self):
        service = self.start(*LISTEN, "--tokens", self.write_tokens(("aaa", "a", ALL, {}), ("bbb", "b", ALL, {}),
                                                                    ("mmm", "m", ["multiply"], {})))
        self.loaded(service)
        x = self.vector(1)[0]
        own, shared = self.make(service, "aaa", matrix="bar"), self.make(service, "aaa", matrix="bar", shared=["b*"])
        self.assertRegex(own, r"^vec-[0-9a-f]{32}$")
        for id in (own, shared):
            self.assertEqual(self.ask(service, "PUT", f"/v1/vectors/{id}", x.tobytes(), "aaa").status, 204)
        product = "/v1/matrices/bar/multiply"
        uses = lambda id: (("GET", f"/v1/vectors/{id}", None), ("PUT", f"/v1/vectors/{id}", x.tobytes()), ("POST", f"{product}?x={id}", None),
                           ("POST", f"{product}?y={id}", x.tobytes()), ("DELETE", f"/v1/vectors/{id}", None))
        none = "vec-" + "0" * 32
        for foreign, unknown in zip(uses(own), uses(none)):
            answers = [self.ask(service, *request, "bbb") for request in (foreign, unknown)]
            self.assert_problem(answers[0], 404, "no_vector", own)
            same = [{**a.json, "request_id": "", "error": a.json["error"].replace(id, "")} for a, id in zip(answers, (own, none))]
            self.assertEqual(same[0], same[1])
        for request in uses(own)[2:4]:
            self.assert_problem(self.ask(service, *request, "mmm"), 403, "missing_scope", "scope vectors")
        listed = lambda token: {one["id"]: one for one in self.ask(service, "GET", "/v1/vectors", token=token).json["vectors"]}
        self.assertEqual((set(listed("aaa")), set(listed("bbb"))), ({own, shared}, {shared}))
        self.assertEqual(listed("aaa")[own]["owner"], "a")
        self.assertNotIn("owner", listed("bbb")[shared])
        self.assertEqual(self.ask(service, "GET", f"/v1/vectors/{own}", token="aaa").body, x.tobytes())
        self.assertEqual(self.ask(service, "POST", f"{product}?x={shared}", token="bbb").body, service.multiply("bar", x).body)
        self.assertEqual(service.get(f"/v1/vectors/{own}").body, x.tobytes())  # the owner of the service has all vectors
        self.assertEqual({one["id"] for one in service.get("/v1/vectors").json["vectors"]}, {own, shared})
        figures = self.ask(service, "GET", "/metrics", token="bbb").body.decode()
        self.assertEqual(set(re.findall(r'token="([^"]*)"', figures)), {"b"})
        self.assertIn('token="a"', service.get("/metrics").body.decode())

    def test_bytes_are_counted(self):
        service = self.start(*LISTEN, "--tokens", self.write_tokens(("aaa", "a", ALL, {"memory_bytes": 20000}), ("bbb", "b", ALL, {})))
        self.loaded(service)
        id = self.make(service, "aaa", n=1000)
        self.assertEqual(self.held(service, "aaa"), (8000, 0))
        answer = self.ask(service, "POST", "/v1/vectors", '{"n": 2000}', "aaa")
        self.assert_problem(answer, 507, "token_memory", "delete vectors")
        x = self.vector(1)[0].tobytes()  # x and y have 15600 bytes
        self.assert_problem(self.ask(service, "POST", "/v1/matrices/bar/multiply", x, "aaa"), 429, "token_memory", "memory_bytes")
        self.assert_problem(self.ask(service, "POST", "/v1/matrices/bar/multiply?k=2", 2 * x, "aaa"), 413, "token_memory")
        self.assertEqual(self.ask(service, "POST", "/v1/matrices/bar/multiply", x, "bbb").status, 200)
        self.assertEqual(self.ask(service, "DELETE", f"/v1/vectors/{id}", token="aaa").status, 204)
        self.assertEqual(self.held(service, "aaa"), (0, 0))
        self.assertEqual(self.ask(service, "POST", "/v1/matrices/bar/multiply", x, "aaa").status, 200)

    def test_who_sends_nothing_holds_nothing(self):
        service = self.start("--arena", "1MiB", "--body-timeout", LIMIT)
        self.loaded(service)
        clients = [service.open() for _ in range(100)]
        for client in clients:
            client.sendall(b"POST /v1/matrices/bar/multiply?k=32 HTTP/1.1\r\nHost: a\r\nContent-Length: 249600\r\n\r\n")
        x = self.vector(1, columns=32)
        for _ in range(5):
            self.assertEqual(service.multiply("bar", x, "?k=32").status, 200)
        self.assertEqual(service.get("/v1/ranks").json["arena"]["used"], 0)
        clients[0].sendall(x.tobytes())  # whose place others had
        self.assertIn(b"200 OK", clients[0].recv(100))
        for client in clients:
            client.close()


class Jobs(TenantTest):
    def test_a_job_exists_for_its_owner_alone(self):
        theirs = ("bbb", "b", ALL, {})
        service = self.start(*LISTEN, "--tokens", self.write_tokens(("aaa", "a", ALL, {"memory_bytes": 40000}), theirs,
                                                                    ("ccc", "c", ALL, {"memory_bytes": 20000})))
        self.loaded(service, solvable=True)
        b = self.vector(1)[0].tobytes()  # 7800 bytes; b, x and what is kept of x have three times as many
        solve = lambda token, query="": self.ask(service, "POST", f"/v1/matrices/bar/solve?wait=60&keep=1{query}", b, token)
        answers = [solve("aaa") for _ in range(3)]
        self.assertEqual([answer.status for answer in answers], [200] * 3, answers[0])
        self.assertEqual(self.held(service, "aaa"), (3 * len(b), 0))
        self.assert_problem(solve("aaa"), 429, "token_memory")
        self.assert_problem(solve("ccc"), 413, "token_memory")
        id = answers[0].headers["Shardmat-Job"]
        for request in (("GET", f"/v1/jobs/{id}"), ("GET", f"/v1/jobs/{id}/x"), ("DELETE", f"/v1/jobs/{id}"),
                        ("POST", f"/v1/matrices/bar/solve?x0={id}", b)):
            self.assert_problem(self.ask(service, *request, token="bbb"), 404, "no_job", id)
        listed = lambda token: [one["id"] for one in self.ask(service, "GET", "/v1/jobs", token=token).json["jobs"]]
        self.assertEqual((len(listed("aaa")), listed("bbb")), (3, []))
        self.assertEqual(self.ask(service, "GET", f"/v1/jobs/{id}/x", token="aaa").body, answers[0].body)
        self.assertEqual(self.ask(service, "DELETE", f"/v1/jobs/{id}", token="aaa").status, 204)
        self.assertEqual(self.held(service, "aaa"), (2 * len(b), 0))
        self.assertEqual(len(service.get("/v1/jobs").json["jobs"]), 2)  # the owner of the service has all jobs
        self.write_tokens(theirs)
        service.hang_up("tokens read again")
        self.assertEqual(service.get("/v1/jobs").json, {"jobs": []})
        service.wait_for("the end of its vectors", lambda: service.get("/v1/vectors").json == {"vectors": []})


class Hangup(TenantTest):
    def test_streams_requests_and_vectors_of_a_revoked_token_end(self):
        mine = ("aaa", "a", ALL, {})
        service = self.start(*LISTEN, "--tokens", self.write_tokens(mine, ("bbb", "b", ALL, {}), ("ccc", "c", ALL, {})))
        self.loaded(service)
        id = self.make(service, "bbb", n=1000)
        head = "{} {} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n"
        streams, bodies = {}, {}
        for token in ("aaa", "bbb", "ccc"):
            streams[token] = socket.create_connection(("127.0.0.1", service.port()), LIMIT)
            streams[token].sendall(head.format("GET", "/v1/events", token, 0).encode())
            self.assertIn(b"200 OK", streams[token].recv(4096))
            bodies[token] = socket.create_connection(("127.0.0.1", service.port()), LIMIT)
            bodies[token].sendall(head.format("POST", "/v1/matrices/bar/multiply", token, 7800).encode() + bytes(100))
        service.wait_for("the bodies", lambda: service.get("/v1/ranks").json["arena"]["used"] > 3 * 100)
        self.write_tokens(mine, ("ccc", "c", ["vectors"], {}))
        service.hang_up("tokens read again")
        for token, status in (("bbb", b"401"), ("ccc", b"403")):
            read_all(streams[token])  # it ends
            self.assertRegex(read_all(bodies[token]), rb"^HTTP/1.1 " + status)
        bodies["aaa"].sendall(bytes(7700))
        self.assertIn(b"200 OK", bodies["aaa"].recv(100))
        self.assertEqual(service.get("/v1/vectors").json, {"vectors": []})
        self.assert_problem(service.get(f"/v1/vectors/{id}"), 404, "no_vector")
        service.ask("POST", "/v1/matrices/bar/unload")
        text = b""
        while b"unloaded" not in text:
            text += streams["aaa"].recv(4096)
        for one in (*streams.values(), *bodies.values()):
            one.close()


class Http(TenantTest):
    def test_clients_of_other_kinds(self):
        service = self.start()
        self.loaded(service)
        x = self.vector(1)[0].tobytes()
        ask = b"POST /v1/matrices/bar/multiply HTTP/1.1\r\nHost: a\r\nContent-Length: 7800\r\n\r\n" + x
        self.assertRegex(service.raw(ask), rb"(?s)^HTTP/1.1 200 .*\r\nDate: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r\n")  # it ends its side
        keep = b"GET /v2/health/live HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
        self.assertEqual(service.raw(keep + keep).count(b"\r\nConnection: keep-alive\r\n"), 2)
        self.assertIn(b"Connection: close", service.raw(b"GET /v2/health/live HTTP/1.0\r\n\r\n", ends=False))
        self.assertRegex(service.raw(b"GET http://localhost/v2/ HTTP/1.1\r\nHost: b\r\n\r\n"), rb"(?s)^HTTP/1.1 200 .*shardmat")
        self.assertEqual(service.raw(b"\r\n" + GET + b"\r\n\r\n\r\n" + GET + b"\r\n").count(b"HTTP/1.1 200"), 2)

    def test_json_has_limits(self):
        service = self.start()
        self.loaded(service)
        index = lambda body: service.ask("POST", "/v2/repository/index", body)
        self.assert_problem(index("{" + ",".join(f'"{i}":0' for i in range(2000)) + "}"), 400, "malformed", "1000 keys")
        self.assert_problem(index("[" * 5000), 400, "malformed", "64 levels")
        self.assert_problem(index('{"a": "' + "x" * 100_000 + '"}'), 413, "too_long")
        n = self.matrix.shape[1]
        x = np.random.default_rng(3).uniform(-1, 1, (16, n))
        infer = {"inputs": [{"name": "x", "shape": [16, n], "datatype": "FP64", "data": x.tolist()}]}
        answer = service.ask("POST", "/v2/models/bar/infer", json.dumps(infer))  # JSON that is read and written aside
        self.assertEqual(answer.status, 200, answer)
        y = np.array(answer.json["outputs"][0]["data"]).reshape(16, -1)
        self.assertEqual(y.tobytes(), b"".join(service.multiply("bar", row).body for row in x))


PAGE = """<title>waiting</title><script>
(async () => {
  const ask = (path, more) => fetch("%s" + path, {headers: {Authorization: "Bearer %s", "Content-Type": "application/octet-stream"}, ...more});
  try {
    const reply = await ask("/v1/matrices/bar/multiply", {method: "POST", body: new Float64Array(%d).fill(1)});
    const y = new Float64Array(await reply.arrayBuffer());
    document.title = "page " + reply.status + " " + reply.headers.get("Shardmat-Type") + " " + y.length;
  } catch (error) { document.title = "page refused"; }
})();
</script>"""


class Pages(TenantTest):
    def test_preflights_are_answered(self):
        service = self.start(*LISTEN, "--origin", "https://lab.example.org")
        fields = {"Origin": "https://lab.example.org", "Access-Control-Request-Method": "PUT"}
        answer = self.ask(service, "OPTIONS", "/v1/vectors/vec-1", **fields)
        self.assertEqual(answer.status, 204, answer)
        self.assertEqual(answer.headers["Access-Control-Allow-Origin"], "https://lab.example.org")
        self.assertIn("Authorization", answer.headers["Access-Control-Allow-Headers"])
        self.assertIn("PUT", answer.headers["Access-Control-Allow-Methods"])
        self.assert_problem(self.ask(service, "OPTIONS", "/v1/ranks", **{**fields, "Origin": "https://evil.example.org"}), 403, "wrong_origin")
        for token, status in ((service.token(), 200), (None, 401)):
            answer = self.ask(service, "GET", "/v1/ranks", token=token, Origin="https://lab.example.org")
            self.assertEqual((answer.status, answer.headers["Access-Control-Allow-Origin"], answer.headers["Vary"]),
                             (status, "https://lab.example.org", "Origin"))
        answer = self.ask(service, "GET", "/v1/ranks", token=service.token(), Origin="https://evil.example.org")
        self.assertEqual((answer.status, answer.headers["Access-Control-Allow-Origin"]), (200, None))

    def test_a_page_in_a_browser(self):
        browser = shutil.which("chromium") or shutil.which("chromium-browser")
        if browser is None:
            self.skipTest("chromium is not installed")
        import http.server
        page = {}

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(page["text"].encode())

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.addCleanup(server.server_close)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        port = server.server_address[1]
        service = self.start(*LISTEN, "--origin", f"http://127.0.0.1:{port}")
        self.loaded(service)
        n = self.matrix.shape[1]
        page["text"] = PAGE % (f"http://127.0.0.1:{service.port()}", service.token(), n)
        for host, says in (("127.0.0.1", f"page 200 f64 {self.matrix.shape[0]}"), ("localhost", "page refused")):
            with tempfile.TemporaryDirectory(prefix="shardmat_browser_") as profile:
                result = subprocess.run(
                    [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
                     "--disable-component-update", "--disable-sync", f"--user-data-dir={profile}", "--virtual-time-budget=60000", "--dump-dom",
                     f"http://{host}:{port}/"], capture_output=True, text=True, timeout=LIMIT)
            self.assertIn(f"<title>{says}</title>", result.stdout, result.stderr[-2000:])


if __name__ == "__main__":
    unittest.main()
