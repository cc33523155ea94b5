"""The doors of the service: addresses, tokens, TLS, what is refused at the door, and what cannot be held open."""

import hashlib
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import unittest

from service import Answer, read_all
from support import INPUT, LIMIT, PROGRAM, RESOURCES, USAGE, run, with_growing_deadline
from test_serve import ServiceTest

LISTEN = ("--listen", "127.0.0.1:0")


def make_certificate(directory, name):
    """NAME.pem and NAME.key, of 127.0.0.1 and localhost."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}",
                    "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"], cwd=directory, check=True, capture_output=True)


class DoorTest(ServiceTest):
    def ask(self, service, method, target, body=None, token=None, **headers):
        """Over TCP."""
        connection = service.tcp_connection()
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            fields["Authorization"] = f"Bearer {token}"
        try:
            connection.request(method, target, body, fields)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def write_tokens(self, *tokens):
        """A token file; each token is (secret, name, scopes, more fields)."""
        entries = [dict(sha256=hashlib.sha256(secret.encode()).hexdigest(), name=name, scopes=scopes, **more)
                   for secret, name, scopes, more in tokens]
        self.path("tokens.json").write_text(json.dumps({"tokens": entries}))
        return self.path("tokens.json")


class Proxies(DoorTest):
    def clients(self, log):
        return [json.loads(line)["client"] for line in log.read_text().splitlines()]

    def test_the_client_is_whom_a_trusted_proxy_names(self):
        log = self.path("access.log")
        service = self.start("--ranks", 1, *LISTEN, "--access-log", log, "--trusted-proxy", "127.0.0.1", "--trusted-proxy", "10.0.0.2")
        expected = []
        for forwarded, client in ((None, "127.0.0.1"), ("192.0.2.1", "192.0.2.1"), ("192.0.2.1, 10.0.0.2", "192.0.2.1"), ("1.2.3.4, 192.0.2.7", "192.0.2.7"),
                                  ("x, 192.0.2.7", "192.0.2.7"), ("2001:db8::1", "2001:db8::1"), ("10.0.0.2", "10.0.0.2"),
                                  ("192.0.2.1:5555", "192.0.2.1"), ("[2001:db8::1]:443", "2001:db8::1"), ("[2001:db8::2]", "2001:db8::2"),
                                  ("1.2.3.4,\t192.0.2.9\t,\t10.0.0.2:1", "192.0.2.9")):
            headers = {} if forwarded is None else {"X_Forwarded_For": forwarded}
            self.assertEqual(self.ask(service, "GET", "/v1/ranks", token=service.token(), **headers).status, 200)
            expected.append(client)
        connection = service.tcp_connection()  # two fields are one list
        connection.putrequest("GET", "/v2/health/live")
        connection.putheader("X-Forwarded-For", "192.0.2.1")
        connection.putheader("X-Forwarded-For", "192.0.2.8")
        connection.endheaders()
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()
        service.wait_for("the log", lambda: self.clients(log)[-len(expected) - 1:] == [*expected, "192.0.2.8"])
        for wrong in ("lab", "192.0.2.1:", "192.0.2.1:x", "192.0.2.1:70000", "[2001:db8::1", "[2001:db8::1]1", "192.0.2. 1"):
            self.assert_problem(self.ask(service, "GET", "/v1/ranks", token=service.token(), X_Forwarded_For=wrong), 400, "malformed", "X-Forwarded-For")

    def test_others_say_nothing_of_themselves(self):
        log = self.path("access.log")
        service = self.start("--ranks", 1, *LISTEN, "--access-log", log, "--trusted-proxy", "10.0.0.2")
        self.ask(service, "GET", "/v1/ranks", token=service.token(), X_Forwarded_For="192.0.2.1", X_Forwarded_Proto="https")
        service.wait_for("the log", lambda: log.exists() and "127.0.0.1" in self.clients(log))
        self.assertNotIn("192.0.2.1", log.read_text())

    def test_pages_behind_tls(self):
        """The cookie is Secure, and the page's Origin is https, if the proxy says so."""
        service = self.start("--ranks", 1, *LISTEN, "--trusted-proxy", "127.0.0.1", "--host-name", "lab.example.org")
        headers = {"Host": "lab.example.org", "Origin": "https://lab.example.org", "X_Shardmat_Page": "1", "X_Forwarded_Proto": "https", "X_Forwarded_For": "192.0.2.1",
                   "Content_Type": "application/x-www-form-urlencoded"}
        answer = self.ask(service, "POST", "/v1/session", f"token={service.token()}", **headers)
        self.assertLess(answer.status, 400, answer)
        self.assertIn("; Secure", answer.headers["Set-Cookie"])
        self.assert_problem(self.ask(service, "POST", "/v1/session", "token=x", **{**headers, "X_Forwarded_Proto": "http"}), 403, "wrong_origin")

    def test_only_proxies_come_without_tls(self):
        addresses = [line.split()[3].split("/")[0] for line in subprocess.run(["ip", "-o", "-4", "address", "show", "scope", "global"], capture_output=True,
                                                                              text=True).stdout.splitlines()]
        if not addresses:
            self.skipTest("this machine has no address but the loopback")
        own = addresses[0]
        for proxy, status in (("10.99.99.99", 403), (own, 200)):
            service = self.start("--ranks", 1, "--listen", f"{own}:0", "--trusted-proxy", proxy, state=f"state{status}")
            service.wait_for("an address", lambda: re.search(rf"listening on http://{re.escape(own)}:(\d+)", service.report()))
            port = int(re.search(rf"listening on http://{re.escape(own)}:(\d+)", service.report())[1])
            connection = http.client.HTTPConnection(own, port, timeout=LIMIT, source_address=(own, 0))
            connection.request("GET", "/v2/health/live")
            answer = Answer(connection.getresponse())
            connection.close()
            self.assertEqual(answer.status, status, answer)
            self.assertEqual(service.terminate(), 0)

    def test_wrong_options(self):
        state = pathlib.Path(tempfile.mkdtemp(prefix="shardmat_state_"))  # made before all is checked
        self.addCleanup(shutil.rmtree, state, ignore_errors=True)
        base = ["serve", "--library", self.library, "--state", state]
        for options, says in ((["--trusted-proxy", "lab"], "lab is no address"), (["--trusted-proxy", "10.0.0.2", "--no-token"], "need tokens"),
                              (["--unix-group", "no-such-group"], "no group no-such-group"), (["--unix-group", "root"], "--unix"),
                              (["--unix-group", "root", "--unix", state / "x.sock"], "--unix")):
            with self.subTest(options=options):
                result = self.call(*base, *LISTEN, *options)
                self.assertEqual(result.code, USAGE, result)
                self.assertIn(says, result.err)

    def test_a_group_on_the_unix_socket(self):
        import grp

        group = grp.getgrgid(os.getgroups()[-1] if os.geteuid() else 65534)
        folder = self.path("run")
        folder.mkdir()
        service = self.start("--ranks", 1, "--unix", folder / "http.sock", "--unix-group", group.gr_name)
        status = (folder / "http.sock").stat()
        self.assertEqual((status.st_mode & 0o777, status.st_gid), (0o660, group.gr_gid))
        self.succeed("client", "status", "--unix", folder / "http.sock")
        self.assertEqual(service.terminate(), 0)


class Tokens(DoorTest):
    def test_tcp_needs_a_token_and_the_unix_socket_none(self):
        service = self.start(*LISTEN, "--listen", "[::1]:0")
        self.assertEqual((service.state / "token").stat().st_mode & 0o777, 0o600)
        self.assertEqual(self.ask(service, "GET", "/v2/health/ready").json, {"ready": True})
        for target in ("/v1/ranks", "/v1/matrices", "/nothing"):
            answer = self.ask(service, "GET", target)
            self.assert_problem(answer, 401, "unauthorized", "a token is needed")
            self.assertEqual(answer.headers["WWW-Authenticate"], 'Bearer realm="shardmat"')
        answer = self.ask(service, "GET", "/v1/ranks", token="wrong")
        self.assert_problem(answer, 401, "unauthorized", "no such token")
        self.assertIn("invalid_token", answer.headers["WWW-Authenticate"])
        self.loaded(service)
        x = self.vector(1)[0]
        answer = self.ask(service, "POST", "/v1/matrices/bar/multiply", x.tobytes(), service.token())
        self.assertEqual(answer.body, service.multiply("bar", x).body)
        self.assert_problem(self.ask(service, "GET", "/nothing", token=service.token()), 404, "no_path")
        token = service.token()
        self.assertEqual(service.terminate(), 0)
        self.assertEqual(self.start(*LISTEN).token(), token)  # a token outlives the service

    def test_scopes_matrices_and_quotas(self):
        file = self.write_tokens(("reader", "r", ["read"], {}), ("user", "u", ["read", "multiply"], {"matrices": ["ba*"]}),
                                 ("slow", "s", ["read"], {"requests_per_second": 0.001}))
        service = self.start(*LISTEN, "--tokens", file)
        self.loaded(service)
        self.loaded(service, "other")
        x = self.vector(1)[0].tobytes()
        product = ("POST", "/v1/matrices/bar/multiply", x)
        self.assertEqual(self.ask(service, *product, "user").status, 200)
        self.assert_problem(self.ask(service, *product, "reader"), 403, "missing_scope", "scope multiply")
        for action in ("load", "unload"):
            answer = self.ask(service, "POST", f"/v1/matrices/bar/{action}", "{}", "user")
            self.assert_problem(answer, 403, "missing_scope", "scope admin")
        self.assert_problem(self.ask(service, "GET", "/v1/matrices/other", token="user"), 403, "wrong_matrix", "other")
        self.assert_problem(self.ask(service, "POST", "/v1/matrices/other/multiply", x, "user"), 403, "wrong_matrix")
        names = [one["name"] for one in self.ask(service, "GET", "/v1/matrices", token="user").json["matrices"]]
        self.assertEqual(names, ["bar"])
        self.assert_problem(self.ask(service, "GET", "/metrics", token="user"), 403, "wrong_matrix", "all matrices")
        self.assertEqual(self.ask(service, "GET", "/metrics", token="reader").status, 200)
        self.assertEqual(self.ask(service, "GET", "/v1/ranks", token="slow").status, 200)
        answer = self.ask(service, "GET", "/v1/ranks", token="slow")
        self.assert_problem(answer, 429, "quota", "used up")
        self.assertGreater(int(answer.headers["Retry-After"]), 1)
        self.assertEqual(self.ask(service, "GET", "/v1/ranks", token=service.token()).status, 200)

    def test_tokens_are_read_again_and_a_bad_file_changes_nothing(self):
        service = self.start(*LISTEN, "--tokens", self.write_tokens(("one", "1", ["read"], {})))
        status = lambda token: self.ask(service, "GET", "/v1/ranks", token=token).status
        self.assertEqual((status("one"), status("two")), (200, 401))
        self.write_tokens(("two", "2", ["read"], {}))
        service.hang_up("tokens read again")
        self.assertEqual((status("one"), status("two")), (401, 200))
        self.write_tokens(("one", "1", ["root"], {}))
        service.hang_up("the old stays")
        self.assertIn('no scope "root"', service.report())
        self.assertEqual((status("one"), status("two"), status(service.token())), (401, 200, 200))

    def test_without_tokens_it_is_said_aloud(self):
        service = self.start(*LISTEN, "--no-token")
        self.assertEqual(self.ask(service, "GET", "/v1/ranks").status, 200)
        self.assertIn("WARNING: --no-token", service.report())
        self.assertFalse((service.state / "token").exists())

    def test_wrong_options_are_refused(self):
        base = ["serve", "--library", self.library, "--state", self.path("state")]
        for options, says in ((["--listen", "0.0.0.0:0"], "needs TLS"), (["--listen", "[::]:0", "--no-token"], "need tokens"),
                              (["--listen", "8980"], "no address to listen on"), (["--listen", "example.org:80"], "no address"),
                              ([*LISTEN, "--tls-key", "k.pem"], "--tls-certificate"), (["--tls-key", "k", "--tls-certificate", "c"], "--listen"),
                              ([*LISTEN, "--no-token", "--tokens", "t"], "--tokens")):
            with self.subTest(options=options):
                result = self.call(*base, *options)
                self.assertEqual(result.code, USAGE, result)
                self.assertIn(says, result.err)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            result = self.call(*base, "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
        self.assertEqual(result.code, RESOURCES, result)
        self.assertIn("choose another address or port", result.err)


class Origins(DoorTest):
    def test_host_and_origin(self):
        service = self.start(*LISTEN, "--host-name", "lab.example.org", "--origin", "https://lab.example.org")
        ask = lambda method, target, **headers: self.ask(service, method, target, token=service.token(), **headers)
        for host in ("localhost", "127.0.0.1:80", "[::1]", "Lab.Example.org:8980"):
            self.assertEqual(ask("GET", "/v1/ranks", Host=host).status, 200, host)
        for host in ("evil.example.org", "localhost.evil.org", "a b"):
            self.assert_problem(ask("GET", "/v2/health/live", Host=host), 421, "wrong_host", "--host-name")
        self.assert_problem(ask("GET", "http://evil.example.org/v1/ranks", Host="localhost"), 421, "wrong_host")
        self.assertEqual(ask("GET", "http://localhost/v1/ranks", Host="evil.example.org").status, 200)
        unload = ("POST", "/v1/matrices/bar/unload")
        self.assert_problem(ask(*unload, Origin="https://evil.example.org"), 403, "wrong_origin", "--origin")
        self.assert_problem(ask(*unload, Origin="https://lab.example.org"), 404, "no_matrix")
        self.assert_problem(service.ask(*unload, Origin="https://evil.example.org"), 403, "wrong_origin")
        self.assertEqual(ask("GET", "/v1/ranks", Origin="https://evil.example.org").status, 200)


def has_tls():
    """False if the program was built without OpenSSL."""
    with tempfile.TemporaryDirectory(prefix="shardmat_tls_") as directory:
        result = run([PROGRAM, "serve", "--library", directory, "--state", f"{directory}/state", *LISTEN, "--tls-certificate", "none",
                      "--tls-key", "none"], directory)
    assert result.code in (INPUT, RESOURCES), result
    return "without OpenSSL" not in result.err


class Https(DoorTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not has_tls():
            raise unittest.SkipTest("the program was built without OpenSSL")

    def context(self, name):
        return ssl.create_default_context(cafile=self.path(f"{name}.pem"))

    def test_products_over_tls_and_a_new_certificate(self):
        for name in ("one", "two"):
            make_certificate(self.directory, name)
        for suffix in ("key", "pem"):
            os.link(self.path(f"one.{suffix}"), self.path(f"now.{suffix}"))
        service = self.start(*LISTEN, "--tls-certificate", self.path("now.pem"), "--tls-key", self.path("now.key"))
        k = self.loaded(service)["widths"][-1]["columns"]
        port = service.port("https")
        x = self.vector(1, columns=k)
        bearer = {"Authorization": f"Bearer {service.token()}"}

        def multiply(context, times=1):
            connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=LIMIT, context=context)
            for _ in range(times):
                connection.request("POST", f"/v1/matrices/bar/multiply?k={k}", x.tobytes(), bearer)
                answer = Answer(connection.getresponse())
                self.assertEqual(answer.status, 200, answer)
                self.assertEqual(answer.body, service.multiply("bar", x, f"?k={k}").body)
            version = connection.sock.version()
            connection.close()
            return version

        self.assertEqual(multiply(self.context("one"), 3), "TLSv1.3")
        [expires] = re.findall(r"^shardmat_certificate_expiry_timestamp_seconds (\S+)$", service.get("/metrics").body.decode(), re.M)
        told = subprocess.run(["openssl", "x509", "-enddate", "-noout", "-in", self.path("one.pem")], capture_output=True, text=True, check=True)
        self.assertEqual(float(expires), ssl.cert_time_to_seconds(told.stdout.strip().removeprefix("notAfter=")))
        old = self.context("one")
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        self.assertEqual(multiply(old), "TLSv1.2")
        with self.assertRaises(ssl.SSLCertVerificationError):
            multiply(self.context("two"))
        with socket.create_connection(("127.0.0.1", port), LIMIT) as plain:  # is sent away, and harms nobody
            plain.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertRegex(read_all(plain), rb"(?s)^HTTP/1.1 400 .*write https:// in place of http:// here\.\n$")
        self.path("now.key").unlink()
        os.link(self.path("two.key"), self.path("now.key"))
        service.hang_up("the old stays")  # the key is of another certificate
        multiply(self.context("one"))
        self.path("now.pem").unlink()
        os.link(self.path("two.pem"), self.path("now.pem"))
        service.hang_up("certificate and key read again")
        multiply(self.context("two"))
        self.assertEqual(service.terminate(), 0, service.report())

    def test_a_client_that_leaves_costs_nothing(self):
        make_certificate(self.directory, "one")
        service = self.start(*LISTEN, "--tls-certificate", self.path("one.pem"), "--tls-key", self.path("one.key"))
        self.loaded(service)
        head = f"POST /v1/matrices/bar/multiply HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {service.token()}\r\nContent-Length: 7800\r\n\r\n"
        for sent in (b"", head.encode(), head.encode() + bytes(100), head.encode() + bytes(7800)):
            with socket.create_connection(("127.0.0.1", service.port("https")), LIMIT) as plain:
                with self.context("one").wrap_socket(plain, server_hostname="127.0.0.1") as client:
                    client.sendall(sent)
        service.wait_for("free memory", lambda: service.get("/v1/ranks").json["arena"]["used"] == 0)
        with socket.create_connection(("127.0.0.1", service.port("https")), LIMIT) as half:
            half.sendall(b"\x16\x03\x01")  # a handshake that does not go on
        self.assertEqual(service.get("/v2/health/live").status, 200)

    def test_files_that_are_no_certificate_are_named(self):
        make_certificate(self.directory, "one")
        make_certificate(self.directory, "two")
        base = ["serve", "--library", self.library, "--state", self.path("state"), *LISTEN]
        self.write("junk.pem", "junk")
        for certificate, key, says in (("none.pem", "one.key", "none.pem"), ("junk.pem", "one.key", "junk.pem"), ("one.pem", "junk.pem", "junk.pem"),
                                       ("one.pem", "two.key", "two.key")):
            result = self.call(*base, "--tls-certificate", certificate, "--tls-key", key)
            self.assertEqual(result.code, INPUT, result)
            self.assertIn(says, result.err)


POST = b"POST /v1/matrices/bar/multiply HTTP/1.1\r\nHost: localhost\r\n"
GET = b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n"
HIDDEN = GET + b"\r\n"


class Smuggling(DoorTest):
    def test_what_others_read_differently_is_refused_and_ends_the_connection(self):
        service = self.start()
        for head, status in (
                (POST + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400),
                (POST + b"Content-Length: 3\r\nContent-Length: 0\r\n\r\nabc", 400),
                (POST + b"Content-Length: 3, 3\r\n\r\nabc", 400),
                (POST + b"Content-Length: +3\r\n\r\nabc", 400),
                (POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
                (POST + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400),
                (POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
                (POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", 400),
                (POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", 400),
                (POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400),
                (POST + b"Content-Length : 3\r\n\r\nabc", 400),
                (POST + b" Content-Length: 3\r\n\r\nabc", 400),
                (GET + b"X: a\r\n b\r\n\r\n", 400), (GET + b"X: a\r\n\tb\r\n\r\n", 400),
                (GET + b"X: a\n\r\n", 400), (GET.replace(b"\r\n", b"\n") + b"\n", 400),
                (GET + b"X: a\rY: b\r\n\r\n", 400), (GET + b"X: a\x00b\r\n\r\n", 400), (GET + b"X\x00: a\r\n\r\n", 400),
                (GET + b": a\r\n\r\n", 400), (GET + b"X\r\n\r\n", 400), (GET + b"Host: other\r\n\r\n", 400),
                (b"GET /v2/health/live HTTP/1.1\r\n\r\n", 400), (b"GET  /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n", 400),
                (b"GET /v2/health/live HTTP/2.0\r\nHost: a\r\n\r\n", 400), (b"GET /v2/health/live\r\n\r\n", 400),
                (b"\n" + GET + b"\r\n", 400), (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
                (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
                (GET + b"X: " + b"a" * 17000 + b"\r\n\r\n", 431), (GET + b"X: a\r\n" * 101 + b"\r\n", 431)):
            with self.subTest(head=head[:100]):
                answer = service.raw(head + HIDDEN, ends=False)  # the service ends the connection
                self.assertRegex(answer, rb"^HTTP/1.1 %d " % status)
                self.assertEqual(len(re.findall(rb"HTTP/1.1 \d", answer)), 1, answer)
                self.assertIn(b"Connection: close\r\n", answer)
        self.assertEqual(service.raw(GET + b"\r\n" + GET + b"Connection: close\r\n\r\n").count(b"HTTP/1.1 200"), 2)

    def test_ids_of_clients_are_checked(self):
        service = self.start()
        self.assertEqual(service.ask("GET", "/v2/health/live", X_Request_Id="my-id.1").headers["X-Request-Id"], "my-id.1")
        for bad in ("a b", 'a"b', "a" * 129):
            self.assertRegex(service.ask("GET", "/v2/health/live", X_Request_Id=bad).headers["X-Request-Id"], r"^[0-9a-f]{8}-[0-9a-f]+$")


class Slowness(DoorTest):
    def test_slow_headers_and_bodies_are_not_waited_for(self):
        with_growing_deadline(self.send_slowly, (0.3, 5, 60))

    def send_slowly(self, seconds):
        service = self.start("--header-timeout", seconds, "--body-timeout", seconds)
        self.loaded(service)
        head = POST + b"Content-Length: 7800\r\n\r\n"
        clients = [(service.open(), data, status) for data, status in (
            (GET, 408), (b"GET /", 408), (GET + b"X: a", 408), (head, 408), (head + bytes(100), 408), (b"", None))]
        for client, data, _ in clients:
            client.sendall(data)
        for client, data, status in clients:
            with client:
                answer = read_all(client)
                self.assertEqual(answer[:13], b"HTTP/1.1 %d " % status if status else b"", f"{data}: {answer}")
        self.assertEqual(service.get("/v1/ranks").json["arena"]["used"], 0)
        self.assertEqual(service.multiply("bar", self.vector(1)[0]).status, 200)
        service.close()

    def test_a_deadline_that_passes_while_the_body_comes(self):
        service = self.start("--body-timeout", 600)
        self.loaded(service)
        head = POST + b"Shardmat-Deadline-Ms: 300\r\nContent-Length: 7800\r\n\r\n"
        for data in (head, head + bytes(100), head + bytes(7799)):
            with self.subTest(sent=len(data)), service.open() as client:
                client.sendall(data)
                answer = read_all(client)
                self.assertRegex(answer, rb"^HTTP/1.1 504 ")
                self.assertIn(b'"code":"deadline"', answer.replace(b'": ', b'":'))
        self.assertEqual(service.get("/v1/ranks").json["arena"]["used"], 0)
        with service.open() as client:  # the deadline of one request is not the next one's
            client.sendall(POST + b"Shardmat-Deadline-Ms: 60000\r\nContent-Length: 7800\r\n\r\n" + bytes(7800) + POST
                           + b"Content-Length: 7800\r\nConnection: close\r\n\r\n" + bytes(7800))
            self.assertEqual(read_all(client).count(b"HTTP/1.1 200 "), 2)

    def test_the_unix_socket_and_health_have_connections_of_their_own(self):
        service = self.start(*LISTEN, "--connections", 16)
        open_one = lambda: socket.create_connection(("127.0.0.1", service.port()), LIMIT)
        clients = [open_one() for _ in range(60)]  # that say nothing
        self.assertEqual(service.get("/v1/ranks").status, 200)
        health = self.ask(service, "GET", "/v2/health/live")
        self.assertEqual((health.status, health.headers["Connection"]), (200, "close"))
        self.assert_problem(self.ask(service, "GET", "/v1/ranks", token=service.token()), 503, "too_many_connections")
        for client in clients:
            client.close()
        service.wait_for("a free connection", lambda: self.ask(service, "GET", "/v1/ranks", token=service.token()).status == 200)

    def test_too_many_connections_are_sent_away(self):
        service = self.start("--connections", 4)
        clients = []

        def one_more():  # connections that ended before count until the service has noticed
            client = service.open()
            client.sendall(GET + b"\r\n")
            if not client.recv(65536).startswith(b"HTTP/1.1 200"):
                return client.close()
            clients.append(client)
            return len(clients) == 4

        service.wait_for("four connections", one_more)
        with service.open() as further:
            answer = read_all(further)
        self.assertRegex(answer, rb"^HTTP/1.1 503 ")
        self.assertEqual(json.loads(answer.split(b"\r\n\r\n")[1])["code"], "too_many_connections")
        for client in clients:
            client.sendall(GET + b"Connection: close\r\n\r\n")
            self.assertIn(b"200 OK", read_all(client))
            client.close()
        service.wait_for("a free connection", lambda: service.get("/v2/health/live").status == 200)


if __name__ == "__main__":
    unittest.main()
