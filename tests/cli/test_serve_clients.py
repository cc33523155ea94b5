"""Clients and settings of the service: shardmat client over the network, watching, options out of a file, the page of curl lines."""

import contextlib
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import unittest

import numpy as np

from support import INPUT, LIMIT, OK, PROGRAM, RANK_LOST, RESOURCES, ROOT, USAGE, environment, read_vector, write_vector
from test_serve import ServiceTest
from test_serve_door import LISTEN, has_tls, make_certificate


class Client(ServiceTest):
    def test_over_http(self):
        service = self.start(*LISTEN)
        at = ["--url", f"http://127.0.0.1:{service.port()}", "--state", service.state]
        self.succeed("client", "load", "bar", "bar.h5", *at)
        x = self.vector(1)[0]
        write_vector(self.path("x.npy"), x)
        self.succeed("client", "multiply", "bar", "x.npy", "y.npy", *at)
        self.assertEqual(read_vector(self.path("y.npy")).tobytes(), service.multiply("bar", x).body)
        self.assertEqual(self.json_of("client", "status", *at)["matrices"][0]["state"], "ready")
        self.fail_with(INPUT, "client", "status", *at[:2], "--state", self.directory, says=["there is no token", "--token-file"])
        self.write("wrong", "a" * 64)
        self.fail_with(INPUT, "client", "status", *at, "--token-file", "wrong", says="no such token")
        self.fail_with(INPUT, "client", "status", *at[:2], "--no-token", says="a token is needed")
        self.fail_with(USAGE, "client", "status", "--url", "127.0.0.1:1", *at[2:], says="no address of a service")
        self.assertEqual(service.terminate(), OK)
        self.fail_with(RESOURCES, "client", "status", *at, says="no service listens")

    def test_over_https(self):
        if not has_tls():
            self.skipTest("the program was built without OpenSSL")
        make_certificate(self.directory, "one")
        make_certificate(self.directory, "two")
        service = self.start(*LISTEN, "--tls-certificate", self.path("one.pem"), "--tls-key", self.path("one.key"))
        for host in ("127.0.0.1", "localhost"):
            at = ["--url", f"https://{host}:{service.port('https')}", "--state", service.state]
            self.assertIn("ready", self.succeed("client", "status", *at, "--ca", "one.pem").out)
            self.fail_with(RESOURCES, "client", "status", *at, "--ca", "two.pem", says=["does not prove who it is", "--ca"])
            self.fail_with(RESOURCES, "client", "status", *at, says="does not prove who it is")

    def test_a_connection_that_the_server_will_end(self):
        """An answer after which the connection ends, though not at once: the next request has a connection of its own."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        matrix = json.dumps({"name": "m", "state": "ready", "rows": 2, "cols": 2, "type": "f64", "widths": [{"columns": 1}]}).encode()
        y = np.array([3.0, -5.0])

        def serve():
            first, _ = listener.accept()
            first.recv(65536)
            first.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n"
                          + f"Content-Length: {len(matrix)}\r\n\r\n".encode() + matrix)
            listener.settimeout(60)
            with contextlib.closing(first), contextlib.suppress(TimeoutError):
                second, _ = listener.accept()  # while the first is open
                second.recv(65536)
                second.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n" + y.tobytes())
                second.close()

        thread = threading.Thread(target=serve)
        thread.start()
        self.write("token", "t")
        write_vector(self.path("x.npy"), np.ones(2))
        self.succeed("client", "multiply", "m", "x.npy", "y.npy", "--url", f"http://127.0.0.1:{listener.getsockname()[1]}", "--token-file", "token")
        thread.join()
        self.assertEqual(read_vector(self.path("y.npy")).tobytes(), y.tobytes())

    def test_https_to_a_port_of_http(self):
        if not has_tls():
            self.skipTest("the program was built without OpenSSL")
        service = self.start(*LISTEN)
        self.fail_with(RESOURCES, "client", "status", "--url", f"https://127.0.0.1:{service.port()}", "--state", service.state,
                       says=["does not answer in TLS", "write http://", "--url"])

    def test_names_are_checked_before_they_are_sent(self):
        for name in ("a b", "a/b", "bar?x=1", ""):
            self.fail_with(USAGE, "client", "load", name, "bar.h5", "--state", self.directory, says="letter or digit")

    def test_gives_up_a_stopped_service(self):
        service = self.start(*LISTEN)
        url = f"http://127.0.0.1:{service.port()}"
        self.succeed("client", "status", "--state", service.state, "--timeout", LIMIT)
        os.kill(service.process.pid, signal.SIGSTOP)
        write_vector(self.path("x.npy"), self.vector(1)[0])
        commands = (["status"], ["load", "bar", "bar.h5"], ["unload", "bar"], ["pin", "bar"], ["multiply", "bar", "x.npy", "y.npy"], ["put-values", "bar", "x.npy"],
                    ["metrics"], ["watch"], ["solve", "bar", "x.npy", "y.npy"], ["submit", "bar", "x.npy"], ["eigen", "bar"], ["jobs"], ["job", "id"],
                    ["cancel", "id"], ["vectors"], ["make-vector", "bar"], ["put-vector", "id", "x.npy"], ["get-vector", "id", "y.npy"], ["delete-vector", "id"],
                    ["upload", "x.npy"], ["library"], ["delete-file", "x.npy"], ["wait"])
        for at in (["--state", service.state], ["--url", url, "--state", service.state]):
            for command in commands:
                with self.subTest(command=command):
                    late = ["--at-most", 0.2] if command == ["wait"] else []
                    self.fail_with(RANK_LOST, "client", *command, *at, "--timeout", 0.2, *late, says="has not answered in time")
            for what in ([], ["--matrix", "bar"], ["--job", "id"]):  # without a time limit of each step
                self.fail_with(RANK_LOST, "client", "wait", *what, *at, "--at-most", 0.3, says=["has not answered in time", "--at-most"])
        remote = ["--remote", url, "--remote-token-file", service.state / "token", "--remote-timeout", 0.3]
        for command in ("multiply", "solve"):
            self.fail_with(RANK_LOST, command, "bar.h5", *remote, says=["has not answered in time", "--remote-timeout"])
        os.kill(service.process.pid, signal.SIGCONT)

    def test_gives_up_a_name_server_that_does_not_answer(self):
        if not os.environ.get("TEST_SLOW_CALLS"):
            self.skipTest("nothing can be loaded before programs with sanitizers")
        service = self.start(*LISTEN)
        at = ["--url", f"http://localhost:{service.port()}", "--state", service.state]
        self.succeed("client", "status", *at, "--timeout", LIMIT)
        slow = {"LD_PRELOAD": os.environ["TEST_SLOW_CALLS"], "SLOW_NAMES": str(10 * LIMIT)}
        self.fail_with(RANK_LOST, "client", "status", *at, "--timeout", 0.2, says=["the address of localhost", "in time", "--timeout"], env=slow)
        self.fail_with(RANK_LOST, "client", "wait", *at, "--at-most", 0.3, says=["the address of localhost", "in time", "--at-most"], env=slow)
        numeric = ["--url", f"http://127.0.0.1:{service.port()}", "--state", service.state]
        self.succeed("client", "status", *numeric, "--timeout", LIMIT, env=slow)

    @unittest.skipUnless(has_tls(), "the program was built without OpenSSL")
    def test_gives_up_a_stopped_service_behind_tls(self):
        make_certificate(self.directory, "one")
        service = self.start(*LISTEN, "--tls-certificate", self.path("one.pem"), "--tls-key", self.path("one.key"))
        at = ["--url", f"https://127.0.0.1:{service.port('https')}", "--state", service.state, "--ca", "one.pem"]
        self.succeed("client", "wait", "--at-most", LIMIT, *at)
        os.kill(service.process.pid, signal.SIGSTOP)
        self.fail_with(RANK_LOST, "client", "wait", *at, "--at-most", 0.3, says="has not answered in time")
        self.fail_with(RANK_LOST, "client", "status", *at, "--timeout", 0.3, says="has not answered in time")
        os.kill(service.process.pid, signal.SIGCONT)

    def test_a_server_that_sends_a_byte_now_and_then(self):
        """The limit of all steps together holds although none of them is long."""
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(str(self.path("slow.sock")))
        listener.listen()

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, contextlib.suppress(OSError):
                        for byte in itertools.cycle(b"HTTP/1.1 200 OK"):
                            connection.sendall(bytes([byte]))
                            time.sleep(0.05)

        threading.Thread(target=serve, daemon=True).start()
        self.fail_with(RANK_LOST, "client", "wait", "--unix", self.path("slow.sock"), "--at-most", 1, says="has not answered in time")

    def test_watch(self):
        service = self.start("--ranks", 2)
        log = self.path("watch.log")
        with open(log, "w") as output:
            watch = subprocess.Popen([PROGRAM, "client", "watch", "--state", service.state], stdout=output, env=environment())
        self.addCleanup(watch.kill)
        service.wait_for("the state", lambda: "service ready" in log.read_text())
        self.loaded(service)
        service.wait_for("a matrix", lambda: "matrix bar ready\n" in log.read_text())
        os.kill(service.workers()[0], signal.SIGKILL)
        service.wait_for("a loss", lambda: re.search(r"^rank_lost: .+ \(rank [01]\)$", log.read_text(), re.M))
        service.wait_for("readiness", lambda: "\nready\n" in log.read_text())
        watch.send_signal(signal.SIGINT)
        self.assertEqual(watch.wait(LIMIT), 0)


    def test_watch_waits_for_the_word_that_the_service_is_there(self):
        service = self.start()
        log = self.path("watch.log")
        with open(log, "w") as output:
            watch = subprocess.Popen([PROGRAM, "client", "watch", "--state", service.state, "--timeout", "4"], stdout=output, stderr=output,
                                     env=environment())
        self.addCleanup(watch.kill)
        service.wait_for("the state", lambda: "service ready" in log.read_text())
        with self.assertRaises(subprocess.TimeoutExpired):  # nothing happens for longer than the limit
            watch.wait(6)
        self.loaded(service)
        service.wait_for("a matrix", lambda: "matrix bar ready\n" in log.read_text())
        os.kill(service.process.pid, signal.SIGSTOP)
        self.assertEqual(watch.wait(LIMIT), RANK_LOST)
        os.kill(service.process.pid, signal.SIGCONT)
        self.assertIn("has not answered in time", log.read_text())
        self.assertIn("20 s at least", " ".join(self.succeed("client", "watch", "--help").out.split()))


class Vectors(ServiceTest):
    def test_made_written_read_and_deleted(self):
        service = self.start("--ranks", 2)
        self.loaded(service, type="f32")
        at = ["--state", service.state]
        x = self.vector(1, "f32", 3)
        write_vector(self.path("x.npy"), x.T)
        id = self.succeed("client", "make-vector", "bar", "--columns", 3, *at).out.removesuffix("\n")
        self.assertRegex(id, r"^vec-[0-9a-f]{32}$")
        self.assertRegex(self.succeed("client", "vectors", *at).out, rf"^{id} +ready +f32 975 × 3, made for bar\n$")
        self.succeed("client", "put-vector", id, "x.npy", *at)
        self.assertEqual(service.get(f"/v1/vectors/{id}").body, x.tobytes())
        self.succeed("client", "get-vector", id, "y.npy", *at)
        y = read_vector(self.path("y.npy"))
        self.assertEqual((y.dtype, y.tobytes()), (np.float32, np.ascontiguousarray(x.T).tobytes()))
        other = self.succeed("client", "make-vector", "--n", 5, *at).out.strip()
        self.assertEqual([line.split()[0] for line in self.succeed("client", "vectors", *at).out.splitlines()], [id, other])
        self.fail_with(INPUT, "client", "put-vector", other, "x.npy", *at, says="x.npy")
        self.fail_with(USAGE, "client", "make-vector", *at, says="--n")
        self.fail_with(USAGE, "client", "make-vector", "--n", 5, "--rows", *at, says="--rows")
        self.fail_with(USAGE, "client", "get-vector", id, "y.pdf", *at, says="y.pdf")
        self.succeed("client", "delete-vector", id, *at)
        self.fail_with(INPUT, "client", "get-vector", id, "y.npy", *at, says=f"no vector {id}")


class Config(ServiceTest):
    def config(self, **options):
        self.path("serve.json").write_text(json.dumps({name.replace("_", "-"): value for name, value in options.items()}))
        return self.path("serve.json")

    def test_the_command_line_goes_first(self):
        file = self.config(ranks=2, arena="1MiB", listen=["127.0.0.1:0", "[::1]:0"], no_token=True, timeout=70)
        service = self.start("--config", file, "--arena", "2MiB")
        ranks = service.get("/v1/ranks").json
        self.assertEqual((len(ranks["ranks"]), ranks["arena"]["bytes"]), (2, 2 << 20))
        self.assertEqual(service.report().count("listening on http://"), 2)
        self.assertIn("WARNING: --no-token", service.report())

    def test_everything_can_stand_in_the_file(self):
        file = self.config(library=str(self.library), state=str(self.path("state")), backend="host")
        process = subprocess.Popen([PROGRAM, "serve", f"--config={file}"], env=environment(), stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        for line in process.stderr:
            if "ready after" in line:
                break
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(LIMIT), OK)

    def test_mistakes_are_named(self):
        base = ["serve", "--library", self.library, "--state", self.path("state")]
        for content, says in (('{"rank": 2}', ['no option "rank"', "ranks", "listen"]), ("[1]", ["no JSON object", "serve.json"]),
                              ('{"ranks": 0}', ["--ranks"]), ('{"arena": "1KB"}', ["--arena"]), ('{"arena": -5}', ["--arena"]), ('{"ranks": {}}', ["ranks must be"])):
            self.write("serve.json", content)
            self.fail_with(USAGE, *base, "--config", "serve.json", says=says)
        self.fail_with(INPUT, *base, "--config", "none.json", says=["none.json", "--config"])


class CurlPage(ServiceTest):
    def test_every_line_works(self):
        page = (ROOT / "tools" / "serve" / "curl.md").read_text()
        service = self.start(*LISTEN)
        shell = "set -euo pipefail\n" + "\n".join(re.findall(r"```sh\n(.*?)```", page, re.S))
        self.assertGreater(shell.count("curl "), 15)
        result = subprocess.run(["bash", "-c", shell], cwd=self.directory, capture_output=True, text=True, timeout=LIMIT,
                                env=dict(environment(), STATE=str(service.state), URL=f"http://127.0.0.1:{service.port()}"))
        self.assertEqual(result.returncode, 0, result.stdout[-2000:] + result.stderr)
        self.assertEqual(self.path("y.bin").read_bytes(), bytes(7800))
        self.assertEqual(self.path("openapi.json").read_bytes(), (ROOT / "tools" / "serve" / "handlers" / "openapi.json").read_bytes())
        self.assertEqual(service.get("/v1/matrices").json, {"matrices": []})


if __name__ == "__main__":
    unittest.main()
