"""The service's page as HTTP: its files, the session of a browser, what it may change, and the stream that it shows."""

import json
import os
import re
import signal
import socket
import unittest

import numpy as np

from service import read_all
from support import LIMIT
from test_serve_door import LISTEN, DoorTest
from test_serve_observe import events_of
from test_serve_solve import SolveTest

FORM = "application/x-www-form-urlencoded"
ALL = ["read", "multiply", "vectors", "library", "admin"]


class PageTest(DoorTest):
    def sign_in(self, service, token=None):
        """The cookie."""
        answer = self.ask(service, "POST", "/v1/session", f"token={token or service.token()}", Content_Type=FORM, X_Shardmat_Page="1")
        self.assertEqual((answer.status, answer.body), (204, b""), answer)
        return answer.headers["Set-Cookie"].split(";")[0]

    def own(self, service):
        """The fields of a request of the page that changes something."""
        return {"Origin": f"http://127.0.0.1:{service.port()}", "X_Shardmat_Page": "1"}

    def listen(self, service, **headers):
        """A socket that has asked for the stream over TCP."""
        client = socket.create_connection(("127.0.0.1", service.port()), LIMIT)
        self.addCleanup(client.close)
        fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        client.sendall(f"GET /v1/live HTTP/1.1\r\nHost: 127.0.0.1\r\n{fields}\r\n".encode())
        return client

    def read_until(self, client, *texts):
        """What comes until all these texts have come."""
        data = b""
        while not all(text in data for text in texts):
            more = client.recv(65536)
            self.assertTrue(more, data[-2000:])
            data += more
        return data

    def events(self, client, *texts):
        """The first events of a stream, until these texts have come."""
        data = self.read_until(client, *texts)
        while not data.endswith(b"\n\n"):
            data += client.recv(65536)
        header, data = data.split(b"\r\n\r\n", 1)
        self.assertRegex(header, rb"^HTTP/1.1 200 (?s:.*)Content-Type: text/event-stream\r\n")
        return events_of(data)


class Files(PageTest):
    def test_they_need_no_token_and_are_sent_once(self):
        service = self.start(*LISTEN)
        page = self.ask(service, "GET", "/")
        self.assertEqual((page.status, page.headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertIn(b'data-client="unknown"', page.body)
        self.assertNotIn(b"<td>", page.body)  # nothing about the service
        names = set(re.findall(r'(?:src|href)="(/page/[^"]+)"', page.body.decode()))
        for name in [*names]:
            script = self.ask(service, "GET", name).body.decode() if name.endswith("page.js") else ""
            names |= {"/page/" + other for other in re.findall(r'from "\./([^"]+)"', script)}
        self.assertGreater(len(names), 6)
        types = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}
        connection = service.tcp_connection()
        self.addCleanup(connection.close)
        for name in ("/", *sorted(names)):
            first = self.ask(service, "GET", name)
            self.assertEqual(first.status, 200, name)
            if name != "/":
                self.assertEqual(first.headers["Content-Type"], types[name.rsplit(".", 1)[1]])
            policy = first.headers["Content-Security-Policy"]
            for rule in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'"):
                self.assertIn(rule, policy)
            self.assertNotIn("unsafe", policy)
            again = service.ask("GET", name, connection=connection, If_None_Match=first.headers["ETag"])
            self.assertEqual((again.status, again.body, again.headers["ETag"]), (304, b"", first.headers["ETag"]))
            self.assertNotIn("Content-Length", again.headers)
            self.assertEqual(service.ask("GET", name, connection=connection, If_None_Match='"another"').body, first.body)
            self.assertEqual(self.ask(service, "HEAD", name).headers["ETag"], first.headers["ETag"])
        for name in ("/page/index.html", "/page/token", "/page/..%2fpage.css", "/page/"):
            self.assert_problem(self.ask(service, "GET", name), 404, "no_path")

    def test_the_library_is_listed(self):
        service = self.start(*LISTEN, "--tokens", self.write_tokens(("rrr", "r", ["read"], {})))
        (self.library / ".hidden.h5").write_bytes(b"1")
        (self.library / "deep").mkdir()
        (self.library / "deep" / "er.h5").write_bytes(b"123")
        os.symlink("/etc/passwd", self.library / "link.h5")
        found = self.ask(service, "GET", "/v1/library", token=service.token())
        self.assertEqual(found.status, 200, found)
        files = {one["source"]: one["bytes"] for one in found.json["files"]}
        self.assertEqual(files, {"bar.h5": (self.library / "bar.h5").stat().st_size, "deep/er.h5": 3,
                                 "elasticity_bar.mtx.gz": (self.library / "elasticity_bar.mtx.gz").stat().st_size})
        self.assertTrue(found.json["all"])
        self.assert_problem(self.ask(service, "GET", "/v1/library", token="rrr"), 403, "missing_scope", "library")


class Sessions(PageTest):
    def test_a_cookie_stands_for_the_token(self):
        service = self.start(*LISTEN)
        token = service.token()
        self.loaded(service)
        form = self.ask(service, "POST", "/v1/session", f"token={token}", Content_Type=FORM, Origin=f"http://127.0.0.1:{service.port()}")
        self.assertEqual((form.status, form.headers["Location"]), (303, "/"))
        cookie = form.headers["Set-Cookie"]
        self.assertRegex(cookie, r"^shardmat-[0-9a-f]{8}=[0-9a-f]{64}; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict$")
        self.assertNotIn(token, cookie)
        cookie = cookie.split(";")[0]
        page = self.ask(service, "GET", "/", Cookie=f"other=1; {cookie}")
        self.assertIn(b'data-client="known"', page.body)
        self.assertIn(b"<td>bar</td><td>ready</td><td>975</td>", page.body)  # for browsers without JavaScript
        self.assertNotEqual(page.headers["ETag"], self.ask(service, "GET", "/").headers["ETag"])
        for target in ("/v1/ranks", "/v1/matrices", "/metrics"):
            self.assertEqual(self.ask(service, "GET", target, Cookie=cookie).status, 200, target)
        name = cookie.split("=")[0]
        for wrong in (f"{name}={'0' * 64}", f"{name}=", cookie[:-1], f"x{cookie}", f"{name}={token}"):
            self.assert_problem(self.ask(service, "GET", "/v1/ranks", Cookie=wrong), 401, "unauthorized")
        other = self.start(*LISTEN, state="other")  # cookies do not know ports
        self.assert_problem(self.ask(other, "GET", "/v1/ranks", Cookie=cookie), 401, "unauthorized")
        self.assertNotEqual(self.sign_in(other).split("=")[0], name)

    def test_a_wrong_token_opens_nothing(self):
        service = self.start(*LISTEN)
        for body in ("token=wrong", "token=", "", "other=1", "token=%zz", f"token={service.token()}&token=x"):
            page = self.ask(service, "POST", "/v1/session", body, Content_Type=FORM)
            self.assertEqual((page.status, page.headers["Set-Cookie"]), (401, None), body)
            self.assertIn("there is no such token", page.body.decode())
            self.assertEqual(page.headers["Content-Type"], "text/html; charset=utf-8")
            self.assert_problem(self.ask(service, "POST", "/v1/session", body, Content_Type=FORM, X_Shardmat_Page="1"), 401, "unauthorized")
        self.assert_problem(self.ask(service, "POST", "/v1/session", "x" * 70000), 413, "too_long")

    def test_only_the_page_itself_changes_something(self):
        service = self.start(*LISTEN, "--host-name", "lab.example.org")
        self.loaded(service)
        cookie = self.sign_in(service)
        pin = lambda **headers: self.ask(service, "POST", "/v1/matrices/bar/pin", '{"pinned": true}', Cookie=cookie, **headers)
        own = self.own(service)
        self.assert_problem(pin(), 403, "not_from_page", "X-Shardmat-Page")
        self.assert_problem(pin(Origin=own["Origin"]), 403, "not_from_page")
        self.assert_problem(pin(X_Shardmat_Page="1"), 403, "not_from_page")
        for origin in ("https://evil.example.org", "null", f"https://127.0.0.1:{service.port()}", f"http://localhost:{service.port()}",
                       f"http://127.0.0.1:{service.port() + 1}"):
            self.assert_problem(pin(Origin=origin, X_Shardmat_Page="1"), 403, "wrong_origin")
        self.assertFalse(service.get("/v1/matrices/bar").json["pinned"])
        self.assertEqual(pin(**own).status, 200)
        self.assertTrue(service.get("/v1/matrices/bar").json["pinned"])
        lab = {"Host": "lab.example.org:80", "Origin": "http://lab.example.org:80", "X_Shardmat_Page": "1"}
        self.assertEqual(pin(**lab).status, 200)
        # A token says enough, whatever cookie comes along; and a wrong one is not made good by a cookie.
        with_token = lambda token: self.ask(service, "POST", "/v1/matrices/bar/pin", '{"pinned": false}', token, Cookie=cookie)
        self.assertEqual(with_token(service.token()).status, 200)
        self.assert_problem(with_token("wrong"), 401, "unauthorized")
        self.assert_problem(self.ask(service, "DELETE", "/v1/session", Cookie=cookie), 401, "unauthorized")
        ended = self.ask(service, "DELETE", "/v1/session", Cookie=cookie, **own)
        self.assertEqual(ended.status, 204)
        self.assertIn("Max-Age=0", ended.headers["Set-Cookie"])
        self.assert_problem(self.ask(service, "GET", "/v1/ranks", Cookie=cookie), 401, "unauthorized")

    def test_a_session_ends_with_its_token(self):
        tokens = self.write_tokens(("aaa", "a", ["read"], {"matrices": ["a*"]}), ("bbb", "b", ["multiply"], {}))
        service = self.start(*LISTEN, "--tokens", tokens)
        cookie = self.sign_in(service, "aaa")
        stream = self.listen(service, Cookie=cookie)
        self.read_until(stream, b"event: now")
        ended, gone = self.sign_in(service), self.listen(service, Authorization="Bearer " + service.token())
        self.read_until(gone, b"event: now")
        self.write_tokens(("bbb", "b", ["multiply"], {}))
        service.hang_up("tokens read again")
        read_all(stream)  # ends
        self.assert_problem(self.ask(service, "GET", "/v1/ranks", Cookie=cookie), 401, "unauthorized")
        self.assertEqual(self.ask(service, "GET", "/v1/ranks", Cookie=ended).status, 200)
        other = self.listen(service, Cookie=ended)
        self.read_until(other, b"event: now")
        self.assertEqual(self.ask(service, "DELETE", "/v1/session", Cookie=ended, **self.own(service)).status, 204)
        read_all(other)  # ends with the session, though its token stays
        self.read_until(gone, b"event: now")  # goes on
        bbb = self.sign_in(service, "bbb")  # may not see anything
        self.assertIn(b'data-client="unknown"', self.ask(service, "GET", "/", Cookie=bbb).body)
        self.assert_problem(self.ask(service, "GET", "/v1/live", Cookie=bbb), 403, "missing_scope", "read")

    def test_where_no_token_is_needed_the_page_simply_works(self):
        service = self.start(*LISTEN, "--no-token")
        self.loaded(service)
        own = self.own(service)
        for ask in (lambda *request, **headers: self.ask(service, *request, **headers), service.ask):
            self.assertIn(b"<td>bar</td>", ask("GET", "/").body)
            headers = own if ask != service.ask else {"Host": "localhost:8980", "Origin": "http://localhost:8980"}
            self.assertEqual(ask("POST", "/v1/matrices/bar/pin", '{"pinned": true}', **headers).status, 200)
            # A foreign name that leads here (DNS rebinding), from a browser.
            rebound = {"Host": "evil.example.org", "Origin": "http://evil.example.org", "User_Agent": "Mozilla/5.0"}
            self.assert_problem(ask("POST", "/v1/matrices/bar/unload", **rebound), 421, "wrong_host")
            self.assert_problem(ask("GET", "/", Host="evil.example.org", User_Agent="Mozilla/5.0"), 421, "wrong_host")


class Stream(PageTest, SolveTest):
    def setUp(self):
        super().setUp()
        self.rests = {}  # what was read beyond the last event, by socket

    def test_it_tells_what_happens(self):
        service = self.start(*LISTEN, "--ranks", 2)
        self.loaded(service)
        client = self.listen(service, Cookie=self.sign_in(service))
        told = dict(self.events(client, b"event: log", b"event: tokens"))
        self.assertEqual((told["hello"]["token"], told["hello"]["sees_log"]), ("owner", True))
        self.assertEqual(set(told["hello"]["scopes"]), set(ALL))
        self.assertGreater(told["hello"]["session_seconds"], 43000)
        self.assertEqual({len(values) for values in told["history"].values()}, {299})
        self.assertEqual(told["now"]["state"], "ready")
        bar = told["matrices"]["matrices"][0]
        self.assertEqual((bar["name"], bar["rows"], bar["nnz"], bar["state"]), ("bar", *[self.matrix.shape[0], self.matrix.nnz], "ready"))
        self.assertTrue(bar["kernels"] and all(bar["why"]), bar)
        self.assertEqual([rank["rank"] for rank in told["ranks"]["ranks"]], [0, 1])
        for rank, own in zip(told["ranks"]["ranks"], service.get("/v1/matrices/bar").json["ranks"]):
            self.assertEqual(rank["held"], {"matrices": own["device_bytes"], "solvers": 0, "vectors": 0})
            self.assertGreater(rank["copy_bandwidth"], 1e7)
            self.assertGreater(rank["memory_bytes"], 1e6)
        self.assertTrue(any("bar is loaded" in line for line in told["log"]), told["log"])
        for _ in range(20):
            self.assertEqual(service.multiply("bar", self.vector(1)[0]).status, 200)
        self.assertEqual(service.multiply("bar", self.vector(1)[0][:3]).status, 422)
        now = self.until(client, "now", lambda now: (now["recent"]["products"] or 0) >= 1.9)
        self.assertEqual(round(10 * now["recent"]["requests"]), 20)
        self.assertEqual(round(10 * now["recent"]["refused"]), 1)
        self.assertTrue(0 < now["recent"]["p50"] <= now["recent"]["p99"] < LIMIT)
        self.assertGreater(now["recent"]["bandwidth"], 0)
        self.assertAlmostEqual(now["limit"], sum(rank["copy_bandwidth"] for rank in told["ranks"]["ranks"]), delta=1)
        self.assertEqual(now["matrices"]["bar"]["columns"], 1)
        tokens = self.until(client, "tokens", lambda tokens: any(one["seconds"] > 0 for one in tokens))
        self.assertEqual([one["name"] for one in tokens if one["seconds"] > 0], ["unix"])
        os.kill(service.workers()[0], signal.SIGKILL)
        lost = self.until(client, "ranks", lambda ranks: ranks["restarts"] == 1)
        self.assertTrue(lost["last_loss"]["reason"])
        self.until(client, "now", lambda now: now["state"] == "ready")

    def until(self, client, event, true):
        """The data of the next event of this kind for which `true` holds."""
        data = self.rests.get(client, b"")
        while True:
            while b"\n\n" in data:
                one, data = data.split(b"\n\n", 1)
                one = one.split(b"\r\n\r\n", 1)[-1]  # without the header of the reply
                for kind, value in events_of(one + b"\n\n"):
                    if kind == event and true(value):
                        self.rests[client] = data
                        return value
            more = client.recv(65536)
            self.assertTrue(more)
            data += more

    def test_jobs_come_with_their_residuals(self):
        service = self.start(*LISTEN, "--tokens", self.write_tokens(("aaa", "a", ["read"], {})))
        self.solvable(service)
        self.solvable(service, "slow", "slow.h5")
        stranger = self.listen(service, Authorization="Bearer aaa")
        self.assertEqual(dict(self.events(stranger, b"event: jobs"))["jobs"], {"jobs": [], "more": 0})
        client = self.listen(service, Cookie=self.sign_in(service))
        self.solve(service, self.b(1)[0], "method=cg&preconditioner=multigrid&wait=60&keep=1", status=200)
        done = self.until(client, "jobs", lambda told: told["jobs"] and told["jobs"][0]["state"] == "done")["jobs"][0]
        job = self.job(service, done["id"])
        self.assertEqual((done["matrix"], done["method"], done["token"]), ("grid", "cg", "unix"))
        self.assertEqual(done["history"][-1], job["history"][-1])
        self.assertRegex(done["note"], r"levels")
        grid = dict(self.events(self.listen(service, Cookie=self.sign_in(service)), b"event: jobs"))["matrices"]["matrices"][0]
        self.assertEqual(grid["name"], "grid")
        self.assertGreater(grid["solver_bytes"], 0)
        self.assertEqual([one["note"] for one in grid["solvers"]], [done["note"]])
        id = self.endless(service)
        lengths = []
        for _ in range(2):
            jobs = self.until(client, "jobs", lambda told: told["jobs"][0]["id"] == id and told["jobs"][0]["iteration"] > sum(lengths))
            lengths.append(jobs["jobs"][0]["iteration"])
            self.assertLessEqual(len(jobs["jobs"][0]["history"]), 101)
        self.assertEqual(self.ask(service, "DELETE", f"/v1/jobs/{id}", Cookie=self.sign_in(service), **self.own(service)).status, 200)
        self.until(client, "jobs", lambda told: told["jobs"][0]["state"] == "cancelled" or told["jobs"][1]["state"] == "cancelled")

    def test_solvers_stay_when_their_jobs_are_forgotten(self):
        service = self.start("--ranks", 2)
        self.solvable(service)
        grid = lambda: service.get("/v1/matrices/grid").json
        self.assertEqual(grid()["solvers"], [])
        multigrid, jacobi = "method=cg&preconditioner=multigrid&alone=1&wait=60", "method=cg&preconditioner=jacobi&wait=60&alone=1"
        self.solve(service, self.b(1)[0], multigrid, status=200)
        self.assertEqual(service.get("/v1/jobs").json["jobs"], [])
        one, = grid()["solvers"]
        self.assertEqual((one["method"], one["preconditioner"], one["columns"]), ("cg", "multigrid", 1))
        self.assertIn("preconditioner=multigrid", one["settings"])
        self.assertRegex(one["note"], r"\d+ levels of .* complexity \d\.\d\d")
        self.assertEqual(one["device_bytes"], sum(rank["solver_bytes"] for rank in grid()["ranks"]))
        self.solve(service, self.b(2)[0], jacobi, status=200)
        other, first = grid()["solvers"]
        self.assertEqual((other["preconditioner"], first), ("jacobi", one))  # the first one keeps when it was used
        self.assertNotIn("note", other)
        self.assertGreaterEqual(other["last_used"], one["last_used"])
        self.solve(service, self.b(3)[0], multigrid, status=200)
        again = grid()["solvers"]
        self.assertEqual([solver["preconditioner"] for solver in again], ["multigrid", "jacobi"])
        self.assertGreater(again[0]["last_used"], one["last_used"])
        self.assertEqual(sum(solver["device_bytes"] for solver in again), sum(rank["solver_bytes"] for rank in grid()["ranks"]))
        os.kill(service.workers()[0], signal.SIGKILL)
        service.wait_for("new ranks", lambda: service.get("/v1/ranks").json["restarts"] == 1 and service.ready())
        self.assertEqual(grid()["solvers"], [])

    def test_requests_of_every_kind_are_counted(self):
        service = self.start(*LISTEN, "--tokens", self.write_tokens(("aaa", "a", ["read"], {"matrices": ["grid"]})))
        self.solvable(service)
        client, some = self.listen(service, Cookie=self.sign_in(service)), self.listen(service, Authorization="Bearer aaa")
        b = self.b(1)[0]
        self.solve(service, b, "method=cg&preconditioner=jacobi&wait=60", status=200)
        self.solve(service, b, "method=cg&preconditioner=none&max_iterations=1&wait=60", status=422)  # does not converge
        self.solve(service, b, "nonsense=1&wait=60", status=400)
        self.assertEqual(service.ask("POST", "/v1/matrices/grid/eigen?wait=60&method=lanczos").status, 200)
        for query in ("", "?transpose=1", "?transpose=1"):
            self.assertEqual(service.multiply("grid", b, query).status, 200)
        batch = b"".join(np.array(part, kind).tobytes() for part, kind in
                         (([0, 1], "i8"), ([0, 1], "i8"), ([0, 1], "i8"), ([2.0], "f8"), ([3.0], "f8"), ([0], "i4")))
        batched = service.ask("POST", "/v1/batches?count=1&rows=1&cols=1&nnz=1", batch, Content_Type="application/octet-stream")
        self.assertEqual((batched.status, np.frombuffer(batched.body).tolist()), (200, [6]))
        wanted = {"solve": (1, 2), "eigen": (1, 0), "multiply": (1, 0), "transpose": (2, 0), "batches": (1, 0)}
        counts = lambda now: {kind: (one["requests"], one["refused"]) for kind, one in now["kinds"].items()}
        kinds = self.until(client, "now", lambda now: counts(now) == wanted)["kinds"]
        for one in kinds.values():
            self.assertTrue(0 < one["p50"] <= one["p99"] < LIMIT, kinds)
        del wanted["batches"]  # which are of no matrix
        self.until(some, "now", lambda now: counts(now) == wanted)

    def test_jobs_that_wait_are_shown(self):
        service = self.start(*LISTEN)
        self.solvable(service, "slow", "slow.h5")
        client = self.listen(service, Cookie=self.sign_in(service))
        for _ in range(3):
            self.endless(service, "&alone=1")  # one after the other
        now = self.until(client, "now", lambda now: now["figures"]["waiting"] == 2)
        self.assertEqual(now["waiting"], {"products": 0, "batches": 0, "jobs": 2})
        self.assertEqual(now["matrices"]["slow"]["waiting"], 2)

    def test_each_page_sees_what_its_token_may_see(self):
        service = self.start(*LISTEN, "--tokens", self.write_tokens(("aaa", "a", ["read", "admin"], {"matrices": ["a*"]}), ("bbb", "b", ["read"], {})))
        self.loaded(service, "apple")
        self.loaded(service, "bar")
        self.assertEqual(service.multiply("bar", self.vector(1)[0]).status, 200)
        told = dict(self.events(self.listen(service, Authorization="Bearer aaa"), b"event: tokens"))
        self.assertEqual([one["name"] for one in told["matrices"]["matrices"]], ["apple"])
        self.assertEqual((told["now"]["matrices"], told["now"]["recent"]["requests"]), ({}, 0))
        self.assertEqual(told["ranks"]["ranks"][0]["held"]["matrices"], service.get("/v1/matrices/apple").json["ranks"][0]["device_bytes"])
        self.assertEqual((told["tokens"], told["hello"]["sees_log"]), ([], False))
        page = self.ask(service, "GET", "/", token="aaa").body
        self.assertIn(b"<td>apple</td>", page)
        self.assertNotIn(b"<td>bar</td>", page)
        self.assertFalse(dict(self.events(self.listen(service, Authorization="Bearer bbb"), b"event: tokens"))["hello"]["sees_log"])
        both = self.listen(service, Authorization="Bearer bbb")
        self.until(both, "now", lambda now: now["matrices"].get("bar", {}).get("requests", 0) > 0)

    def test_it_ends_when_the_service_drains(self):
        service = self.start(*LISTEN)
        clients = [self.listen(service, Authorization="Bearer " + service.token()) for _ in range(32)]
        for client in clients:
            self.read_until(client, b"event: now")
        late = self.listen(service, Authorization="Bearer " + service.token())
        self.assertRegex(self.read_until(late, b"too_many_pages"), rb"^HTTP/1.1 503 ")
        clients.pop().close()
        service.wait_for("room for a page", lambda: b"event-stream" in self.listen(service, Authorization="Bearer " + service.token()).recv(200))
        self.assertEqual(service.terminate(), 0, service.report())
        for client in clients:
            read_all(client)

    def test_while_the_service_leaves_it_says_so(self):
        service = self.start(*LISTEN, "--drain-seconds", 3)
        client = self.listen(service, Authorization="Bearer " + service.token())
        self.read_until(client, b"event: now")
        service.process.send_signal(signal.SIGTERM)
        self.assertIn("shutting down", self.until(client, "now", lambda now: now["state"] == "draining")["reason"])
        read_all(client)
        self.assertEqual(service.process.wait(LIMIT), 0)


if __name__ == "__main__":
    unittest.main()
