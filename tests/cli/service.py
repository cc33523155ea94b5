"""Starts the service in a directory of a test, speaks HTTP with it over its Unix socket, and ends everything it started."""

import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time

from support import BACKEND, LIMIT, PROGRAM, environment, most_ranks


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=LIMIT)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(LIMIT)
        self.sock.connect(self.path)


class Answer:
    def __init__(self, reply):
        self.status, self.headers, self.body = reply.status, reply.headers, reply.read()

    @property
    def json(self):
        return json.loads(self.body)

    def __str__(self):
        return f"{self.status} {dict(self.headers)} {self.body[:500]!r}"


def read_all(client):
    """What comes until the other side ends; a connection that it resets has ended, too."""
    answer = b""
    try:
        while more := client.recv(65536):
            answer += more
    except ConnectionError:
        pass
    return answer


def at_once(count, client):
    """Calls client(number) for each number below count, in a thread each, and waits for all."""
    threads = [threading.Thread(target=client, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Service:
    """`with Service(library, state, "--ranks", 2) as service:`"""

    def __init__(self, library, state, *options, env=None, output=None, preexec_fn=None):
        """`output`: where the service's own log goes; by itself to a file. No request is refused because a busy machine lets
        it wait for long, unless the options say so."""
        if "--max-queue-ms" not in options:
            options = ("--max-queue-ms", 600_000, *options)
        if "--ranks" in options:
            at = options.index("--ranks") + 1
            options = (*options[:at], min(int(options[at]), most_ranks()), *options[at + 1:])
        self.state = pathlib.Path(state)
        self.socket = pathlib.Path(options[options.index("--unix") + 1]) if "--unix" in options else self.state / "http.sock"
        self.log = open(f"{state}.log", "a+")
        command = [PROGRAM, "serve", "--library", library, "--state", state, "--backend", BACKEND, *options]
        self.process = subprocess.Popen(list(map(str, command)), env=environment(**(env or {})), stdin=subprocess.DEVNULL,
                                        stdout=output or self.log, stderr=output or self.log,
                                        preexec_fn=preexec_fn)

    def __enter__(self):
        try:
            self.wait_until_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def report(self):
        self.log.flush()
        workers = self.state / "workers.log"
        return pathlib.Path(self.log.name).read_text() + (workers.read_text() if workers.exists() else "")

    def wait_for(self, what, true):
        end = time.monotonic() + LIMIT
        while not true():
            if time.monotonic() > end:
                raise AssertionError(f"{what} did not come in {LIMIT} s:\n{self.report()}")
            time.sleep(0.02)

    def ready(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the service ended with {self.process.returncode}:\n{self.report()}")
        try:
            return self.get("/v2/health/ready").status == 200
        except OSError:
            return False

    def wait_until_ready(self):
        self.wait_for("readiness", self.ready)

    def connection(self):
        return UnixConnection(self.socket)

    def port(self, scheme="http"):
        """Of the first address that it listens on."""
        pattern = rf"listening on {scheme}://(?:127\.0\.0\.1|\[::1\]):(\d+)"
        self.wait_for("an address", lambda: re.search(pattern, self.report()))
        return int(re.search(pattern, self.report())[1])

    def tcp_connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port(), timeout=LIMIT)

    def token(self):
        return (self.state / "token").read_text().strip()

    def hang_up(self, says):
        """Sends SIGHUP and waits until the log has one more line with this text."""
        before = self.report().count(says)
        self.process.send_signal(signal.SIGHUP)
        self.wait_for(says, lambda: self.report().count(says) > before)

    def ask(self, method, target, body=None, connection=None, **headers):
        own = connection or self.connection()
        try:
            own.request(method, target, body, {k.replace("_", "-"): v for k, v in headers.items()})
            return Answer(own.getresponse())
        finally:
            if connection is None:
                own.close()

    def get(self, target):
        return self.ask("GET", target)

    def load(self, name, source, **more):
        return self.ask("POST", f"/v1/matrices/{name}/load?wait=1", json.dumps({"source": source, **more}))

    def multiply(self, name, x, query="", connection=None, **headers):
        return self.ask("POST", f"/v1/matrices/{name}/multiply{query}", x.tobytes(), connection,
                        Content_Type="application/octet-stream", **headers)

    def open(self):
        """A socket connected to the service."""
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.settimeout(LIMIT)
        client.connect(str(self.socket))
        return client

    def raw(self, data, ends=True):
        """Whatever the service answers to these bytes until it closes the connection. `ends`: nothing more comes from here."""
        with self.open() as client:
            client.sendall(data)
            if ends:
                client.shutdown(socket.SHUT_WR)
            return read_all(client)

    def processes(self):
        """Process ids of mpirun and the ranks by what they are called with; they are known by this service's sockets."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            except OSError:
                continue
            if any(word.startswith(bytes(self.state) + b"/run/") for word in words):
                found.append((int(entry.name), words[0]))
        return found

    def workers(self):
        return [pid for pid, program in self.processes() if program.endswith(b"/shardmat")]

    def at_once_behind_ranks(self, name, count, client):
        """at_once(), while the ranks stand still until four products of this matrix wait: on a busy machine, too, some of the
        first ones are merged."""
        def let_ranks_go_on():
            try:
                self.wait_for("products that wait", lambda: self.get(f"/v1/matrices/{name}").json["waiting"] >= 4)
            finally:
                for pid in self.workers():
                    os.kill(pid, signal.SIGCONT)

        for pid in self.workers():
            os.kill(pid, signal.SIGSTOP)
        at_once(count + 1, lambda number: client(number) if number < count else let_ranks_go_on())

    def terminate(self):
        """Exit code after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(LIMIT)

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for pid, _ in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.log.close()
