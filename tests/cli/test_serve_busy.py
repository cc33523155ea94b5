"""What the service does when more is asked for than its ranks can do: refusals before the body, shares and priorities."""

import json
import os
import signal
import threading
import unittest

import scipy.sparse as sp

from service import read_all
from support import write_binsparse
from test_serve import ServiceTest
from test_serve_door import LISTEN, DoorTest

HEAD = "POST /v1/matrices/{}/multiply HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n"


class Admission(ServiceTest):
    """With --max-queue-ms 0 a request is refused as soon as any other waits."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        write_binsparse(cls.library / "large.h5", sp.identity(10000, format="csr"))

    def setUp(self):
        super().setUp()
        self.service = self.start("--max-queue-ms", 0)
        self.loaded(self.service)
        self.loaded(self.service, "large", "large.h5")

    def reply_to(self, head, body=b""):
        """The reply to a header, before any of the body is sent; then the body is. Returns the client, too."""
        client = self.service.open()
        self.addCleanup(client.close)
        client.sendall(head.encode() + b"\r\n")
        reply = client.recv(65536)
        client.sendall(body)
        return client, reply

    def assert_busy(self, reply):
        head, body = reply.split(b"\r\n\r\n")
        self.assertRegex(head, rb"^HTTP/1.1 429 ")
        problem = json.loads(body)
        self.assertEqual(problem["code"], "busy")
        self.assertIn(b"Retry-After: 1", head.split(b"\r\n"))
        self.assertGreater(problem["retry_after_ms"], 0)

    def test_busy_is_said_before_the_body_comes(self):
        first = self.service.open()
        self.addCleanup(first.close)
        first.sendall(HEAD.format("bar", 7800).encode() + b"\r\n" + bytes(100))  # is let in, and waits for its body
        self.service.wait_for("the first request", lambda: self.service.get("/v1/ranks").json["arena"]["used"] > 0)
        client, reply = self.reply_to(HEAD.format("bar", 7800), bytes(7800) + b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        self.assert_busy(reply)
        self.assertNotIn(b"Connection: close", reply)
        answer = read_all(client)  # the short body is ignored, and the connection goes on
        self.assertRegex(answer, rb"^HTTP/1.1 200 ")
        self.assertEqual(answer.count(b"HTTP/1.1 "), 1, answer)
        for head in (HEAD.format("large", 80000), HEAD.format("bar", 7800) + "Expect: 100-continue\r\n"):
            client, reply = self.reply_to(head)
            self.assert_busy(reply)
            self.assertIn(b"Connection: close\r\n", reply)
            self.assertEqual(read_all(client), b"")
        infer = HEAD.format("bar", 7800).replace("/v1/matrices/bar/multiply", "/v2/models/bar/infer")
        self.assert_busy(self.reply_to(infer + "Inference-Header-Content-Length: 0\r\n")[1])
        first.sendall(bytes(7700))
        self.assertIn(b"200 OK", first.recv(100))
        self.assertEqual(self.service.multiply("bar", self.vector(1)[0]).status, 200)

    def test_who_leaves_waits_no_longer(self):
        with self.service.open() as first:
            first.sendall(HEAD.format("bar", 7800).encode() + b"\r\n" + bytes(100))
            self.service.wait_for("the first request", lambda: self.service.get("/v1/ranks").json["arena"]["used"] > 0)
            self.assert_problem(self.service.multiply("bar", self.vector(1)[0]), 429, "busy", "try again later")
        self.service.wait_for("an answer", lambda: self.service.multiply("bar", self.vector(1)[0]).status == 200)


class Order(DoorTest):
    """A stopped rank lets requests wait; when it goes on, the access log tells in which order they had their products."""

    def setUp(self):
        super().setUp()
        tokens = self.write_tokens(("many", "m", ["multiply"], {}), ("few", "f", ["multiply"], {"weight": 2}),
                                   ("idle", "i", ["multiply"], {"priority": "low"}))
        self.service = self.start(*LISTEN, "--no-merge", "--access-log", self.path("access.log"), "--tokens", tokens, "--timeout", 60)
        self.loaded(self.service)

    def order_of(self, requests):
        """Ids in the order of their products. A request is (id, query, token, fields)."""
        [rank] = self.service.workers()
        os.kill(rank, signal.SIGSTOP)
        x, clients, wrong = self.vector(1)[0].tobytes(), [], []

        def client(id, query, token, fields):
            target = "/v1/matrices/bar/multiply" + query
            answer = self.ask(self.service, "POST", target, x, token, X_Request_Id=id, **fields)
            if answer.status != 200:
                wrong.append(str(answer))

        try:
            for waiting, request in enumerate([("first", "", self.service.token(), {}), *requests]):
                clients.append(threading.Thread(target=client, args=request))
                clients[-1].start()  # the first one has its product at once, and the others wait for it
                self.service.wait_for(request[0], lambda: self.service.get("/v1/matrices/bar").json["waiting"] == waiting and
                                      (waiting > 0 or self.service.get("/v1/ranks").json["arena"]["used"] > 0))
        finally:
            os.kill(rank, signal.SIGCONT)
            for one in clients:
                one.join()
        self.assertEqual(wrong, [])
        lines = [json.loads(line) for line in self.path("access.log").read_text().splitlines()]
        return [line["request_id"] for line in lines if line["path"].startswith("/v1/matrices/bar/multiply")]

    def test_priorities(self):
        owner = self.service.token()
        self.assertEqual(self.order_of([("low", "?priority=low", owner, {}), ("idle", "", "idle", {}), ("normal", "", owner, {}),
                                        ("high", "", owner, {"Shardmat-Priority": "high"})])[:3], ["first", "high", "normal"])
        x = self.vector(1)[0]
        answer = self.ask(self.service, "POST", "/v1/matrices/bar/multiply?priority=high", x.tobytes(), "many")
        self.assert_problem(answer, 403, "priority", "may ask for priority normal, not high")
        self.assert_problem(self.service.multiply("bar", x, "?priority=urgent"), 400, "malformed", "high, normal or low")
        self.assert_problem(self.service.multiply("bar", x, Shardmat_Priority="0"), 400, "malformed", "high, normal or low")

    def test_clients_have_their_shares(self):
        order = self.order_of([(f"many{i}", "", "many", {}) for i in range(4)] + [("few0", "", "few", {})])
        self.assertEqual(order[:3], ["first", "many0", "few0"])
        figures = self.service.get("/metrics").body.decode()
        for token in ("m", "f", "owner"):
            self.assertRegex(figures, rf'shardmat_token_seconds_total{{token="{token}"}} [\d.e-]+\n')


if __name__ == "__main__":
    unittest.main()
