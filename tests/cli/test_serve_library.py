"""Files and arrays that clients send to the service."""

import ctypes
import hashlib
import json
import os
import pathlib
import platform
import signal
import struct
import threading
import time
import unittest

import numpy as np
import scipy.sparse

from support import DATA, INPUT, RESOURCES, read_vector, write_vector
from test_serve import ServiceTest
from test_serve_door import LISTEN

FILE = DATA / "elasticity_bar.mtx.gz"


def without_nameless_files():
    """From now on this process and its children get EOPNOTSUPP for O_TMPFILE, as on NFS: a filter of system calls."""
    O_TMPFILE, OPENAT, REFUSE, ALLOW = 0o20000000, 257, 0x00050000 | 95, 0x7FFF0000
    code = [(0x20, 0, 0, 0), (0x15, 0, 3, OPENAT), (0x20, 0, 0, 32), (0x45, 0, 1, O_TMPFILE), (0x06, 0, 0, REFUSE), (0x06, 0, 0, ALLOW)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in code))
    filter = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code), ctypes.addressof(program)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, filter, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no filter of system calls")


def arrays_of(a, offsets="i64", columns="i32", values="f64", **line):
    """A matrix as the body of PUT /v1/matrices/NAME."""
    words = {"rows": a.shape[0], "cols": a.shape[1], "nonzeros": a.nnz, "offsets": offsets, "columns": columns, "values": values, **line}
    dtypes = {"i32": "<i4", "i64": "<i8", "f32": "<f4", "f64": "<f8"}
    parts = (a.indptr.astype(dtypes[offsets]), a.indices.astype(dtypes[columns]), a.data.astype(dtypes[values]))
    return ("%%Shardmat CSR " + " ".join(f"{key}={value}" for key, value in words.items()) + "\n").encode() + b"".join(part.tobytes() for part in parts)


class LibraryTest(ServiceTest):
    def put(self, service, name, data, query=""):
        return service.ask("PUT", f"/v1/library/{name}{query}", data, Content_Type="application/octet-stream")

    def start(self, *options, **more):
        library = self.path("library")
        library.mkdir(exist_ok=True)
        self.library = library
        return super().start(*options, **more)

    def names(self, service):
        answer = service.get("/v1/library")
        self.assertEqual(answer.status, 200, answer)
        return [file["source"] for file in answer.json["files"]]

    def own_files(self):
        """What lies in the service's own folder of the library."""
        return sorted(path.name for folder in self.library.glob(".shardmat-*") for path in folder.iterdir())

    def conversion(self, service, name):
        """Once it has ended."""
        def of():
            return {file["source"]: file for file in service.get("/v1/library").json["files"]}[name].get("conversion", {})

        service.wait_for("the conversion", lambda: of().get("state") not in ("waiting", "running"))
        return of()


class Library(LibraryTest):
    def test_an_upload_is_loaded_and_multiplied(self):
        service = self.start("--ranks", 2, "--upload-limit", "3MB")
        at = ["--state", service.state]
        self.assertEqual(self.names(service), [])
        self.assertEqual(self.succeed("client", "upload", FILE, "sent.mtx.gz", *at).out, "sent.mtx.gz\n")
        self.assertEqual((self.library / "sent.mtx.gz").read_bytes(), FILE.read_bytes())
        self.assertEqual(self.conversion(service, "sent.mtx.gz"), {"state": "done", "source": "sent.mtx.gz.h5"})
        self.assertRegex(self.succeed("client", "library", *at).out,
                         r"^sent\.mtx\.gz +[\d.]+ kB, as a shard file: sent\.mtx\.gz\.h5\nsent\.mtx\.gz\.h5 +[\d.]+ kB\n$")
        self.assertEqual(self.own_files(), [])
        self.succeed("verify-file", self.library / "sent.mtx.gz.h5")
        self.loaded(service, "bar", "sent.mtx.gz")
        x = self.vector(1)[0]
        np.testing.assert_allclose(self.y_of(service.multiply("bar", x)), self.matrix @ x, rtol=0, atol=1e-9)
        write_vector(self.path("x.npy"), x)
        self.succeed("multiply", "sent.mtx.gz", "--remote", service.state, "--x", "x.npy", "--output", "y.npy")
        self.assertEqual(read_vector(self.path("y.npy")).tobytes(), service.multiply("bar", x).body)
        self.fail_with(INPUT, "client", "upload", FILE, "sent.mtx.gz", *at, says="the library has a file sent.mtx.gz")
        self.fail_with(INPUT, "client", "upload", "none.mtx", *at, says="none.mtx")

    def test_a_file_that_takes_longer_to_hash_than_a_header_may_take(self):
        service = self.start("--ranks", 1, "--upload-limit", "3MB", "--header-timeout", 0.5)
        with open(self.path("large.h5"), "wb") as file:
            file.truncate(256 << 20)
        self.fail_with(RESOURCES, "client", "upload", "large.h5", "--state", service.state, says="--upload-limit")

    def test_pieces_and_hashes(self):
        service = self.start("--ranks", 1, "--upload-limit", "3MB")
        for bytes in (1, 1 << 20, (1 << 20) + 1, 2_500_000):
            data = np.random.default_rng(bytes).bytes(bytes)
            answer = self.put(service, f"f{bytes}.bin", data, f"?sha256={hashlib.sha256(data).hexdigest()}")
            self.assertEqual(answer.status, 201, answer)
            self.assertEqual(answer.json, {"name": f"f{bytes}.bin", "bytes": bytes, "sha256": hashlib.sha256(data).hexdigest()})
            self.assertEqual((self.library / f"f{bytes}.bin").read_bytes(), data)
        for bytes in (1, 1 << 20, (1 << 20) + 1, 2_500_000):
            self.assertEqual(self.conversion(service, f"f{bytes}.bin")["state"], "failed")
        self.assertIn(f"f{bytes}.bin", self.conversion(service, f"f{bytes}.bin")["reason"])
        before = self.names(service)
        self.assertEqual(len(before), 4)
        self.assert_problem(self.put(service, "wrong.bin", data, "?sha256=" + "0" * 64), 422, "wrong_hash")
        self.assert_problem(self.put(service, "f1.bin", data), 409, "exists")
        self.assert_problem(self.put(service, "empty.bin", b""), 422, "wrong_length")
        self.assert_problem(self.put(service, "large.bin", bytes_of(3_000_001)), 413, "too_long", "--upload-limit")
        for name, code in ((".hidden", "bad_name"), ("a%2fb", "bad_name"), ("..", "bad_name"), ("x" * 65, "bad_name")):
            self.assertIn(self.put(service, name, b"1").status, (400, 404), name)
        self.assert_problem(self.put(service, "a", b"1", "?sha256=12"), 400, "malformed")
        self.assertEqual(self.names(service), before)

    @unittest.skipUnless(platform.machine() == "x86_64", "the filter of system calls is for x86-64")
    def test_a_file_system_without_nameless_files(self):
        service = self.start("--ranks", 1, "--upload-limit", "3MB", preexec_fn=without_nameless_files)
        data = np.random.default_rng(1).bytes(2_500_000)
        self.assertEqual(self.put(service, "a.h5", data).status, 201)
        self.assertEqual((self.library / "a.h5").read_bytes(), data)
        self.assert_problem(self.put(service, "wrong.h5", data, "?sha256=" + "0" * 64), 422, "wrong_hash")
        self.assertEqual(self.own_files(), [])
        with service.open() as client:
            client.sendall(b"PUT /v1/library/half.h5 HTTP/1.1\r\nHost: a\r\nContent-Length: 2500000\r\n\r\n" + bytes_of(1_500_000))
            service.wait_for("a part of the file", lambda: self.own_files() == ["incoming.3"])
        service.wait_for("the end of the upload", lambda: self.own_files() == [])
        with service.open() as client:
            client.sendall(b"PUT /v1/library/half.h5 HTTP/1.1\r\nHost: a\r\nContent-Length: 2500000\r\n\r\n" + bytes_of(1_500_000))
            service.wait_for("a part of the file", lambda: self.own_files() == ["incoming.4"])
            service.process.kill()
            service.process.wait()
        service.close()
        self.assertEqual(self.own_files(), ["incoming.4"])
        [folder] = self.library.glob(".shardmat-*")
        (folder / "conversion.1.h5").write_bytes(b"1")  # and of a conversion
        service = self.start("--ranks", 1)
        self.assertEqual((self.own_files(), self.names(service)), ([], ["a.h5"]))

    def test_scopes(self):
        token = {}
        for name, scopes in (("boss", "read,multiply,admin"), ("files", "read,library"), ("both", "read,multiply,admin,library")):
            token[name] = self.succeed("token", "add", name, "--scope", scopes, "--tokens", "tokens.json").out.strip()
            self.write(f"{name}.token", token[name])
        service = self.start("--ranks", 1, "--upload-limit", "3MB", *LISTEN, "--tokens", self.path("tokens.json"))
        url = ["--url", f"http://127.0.0.1:{service.port()}", "--token-file"]
        for command in (["upload", FILE], ["library"], ["delete-file", FILE.name]):
            self.fail_with(INPUT, "client", *command, *url, "boss.token", says="the token boss has no scope library")
        self.succeed("client", "upload", FILE, *url, "files.token")
        self.fail_with(INPUT, "client", "load", "bar", FILE.name, *url, "files.token", says="no scope admin")
        self.succeed("client", "load", "bar", FILE.name, *url, "boss.token")
        body = arrays_of(self.matrix)
        for name, code in (("boss", 403), ("files", 403), ("both", 201)):
            answer = service.ask("PUT", "/v1/matrices/sent", body, service.tcp_connection(), Authorization=f"Bearer {token[name]}")
            self.assertEqual(answer.status, code, answer)
        self.fail_with(INPUT, "client", "delete-file", FILE.name, *url, "files.token", says="a matrix is loaded from")
        self.succeed("client", "unload", "bar", *url, "boss.token")
        self.conversion(service, FILE.name)
        self.succeed("client", "delete-file", FILE.name, *url, "files.token")
        self.assertEqual(self.names(service), [])  # its shard file is gone, too
        self.fail_with(INPUT, "client", "delete-file", FILE.name, *url, "files.token", says="has no file")
        os.symlink(FILE, self.library / "link.mtx.gz")
        (self.library / ".hidden").write_text("1")
        for name in ("link.mtx.gz", ".hidden", "..", "a%2fb"):
            self.assertIn(service.ask("DELETE", f"/v1/library/{name}").status, (400, 404), name)
        self.assertTrue((self.library / "link.mtx.gz").exists() and (self.library / ".hidden").exists())

    def restart(self, service, *options):
        self.assertEqual(service.terminate(), 0, service.report())
        service.close()
        return self.start(*options)

    def delete(self, service, name):
        return service.ask("DELETE", f"/v1/library/{name}")

    def test_records_that_cannot_be_read_are_set_aside(self):
        options = ("--ranks", 1, "--upload-limit", "3MB")
        service = self.start(*options)
        self.assertEqual(self.put(service, "c.mtx", b"%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\n").status, 201)
        self.assertEqual(self.conversion(service, "c.mtx")["state"], "done")
        records = service.state / "shards.json"
        for text in ("", '{"shards": [{}]}'):
            self.assertEqual(service.terminate(), 0, service.report())
            service.close()
            records.write_text(text)
            service = self.start(*options)
            self.assertIn("shards.json is not what the service wrote", service.report())
            self.assertEqual(records.with_name("shards.json.aside").read_text(), text)
            self.assertFalse(records.exists())

    def test_whose_shard_file_it_is(self):
        options = ("--ranks", 1, "--upload-limit", "3MB")
        service = self.start(*options)
        first, second = ((f"%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 {value}\n").encode() for value in (1, 2))
        done = {"state": "done", "source": "c.mtx.h5"}
        self.assertEqual(self.put(service, "c.mtx", first).status, 201)
        self.assertEqual(self.conversion(service, "c.mtx"), done)
        service = self.restart(service, *options)
        self.assertEqual(self.conversion(service, "c.mtx"), done)
        self.loaded(service, "c", "c.mtx.h5")
        self.assert_problem(self.delete(service, "c.mtx"), 409, "in_use", "c.mtx.h5")
        self.assertEqual(service.ask("POST", "/v1/matrices/c/unload").status, 200)
        self.assertEqual(self.delete(service, "c.mtx").status, 204)
        self.assertEqual(self.names(service), [])
        self.assertEqual(self.put(service, "c.mtx", second).status, 201)
        self.assertEqual(self.conversion(service, "c.mtx"), done)
        self.loaded(service, "c", "c.mtx.h5")
        self.assertEqual(self.y_of(service.multiply("c", np.ones(1))).tolist(), [2])
        self.assertEqual(service.ask("POST", "/v1/matrices/c/unload").status, 200)
        (self.library / "c.mtx").unlink()  # by hand
        shard = (self.library / "c.mtx.h5").read_bytes()
        for query in ("", "?sha256=" + hashlib.sha256(first).hexdigest()):
            self.assert_problem(self.put(service, "c.mtx", first, query), 409, "exists", "c.mtx.h5")
        self.assertEqual(self.put(service, "c.mtx", second, "?sha256=" + hashlib.sha256(second).hexdigest()).status, 201)
        service = self.restart(service, *options)
        self.assertEqual(self.conversion(service, "c.mtx"), done)
        (self.library / "c.mtx").write_bytes(first)
        self.assertEqual(self.conversion(service, "c.mtx"), {})  # not of these bytes
        (self.library / "c.mtx.h5").write_bytes(shard + b"x")
        self.assertEqual(self.delete(service, "c.mtx").status, 204)
        self.assertEqual(self.names(service), ["c.mtx.h5"])  # somebody else's
        self.assert_problem(self.put(service, "c.mtx", first), 409, "exists", "c.mtx.h5")

    def test_a_failure_counts_for_the_bytes_that_failed_alone(self):
        service = self.start("--ranks", 1, "--upload-limit", "1GB")
        good = b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 5\n"
        bad = good.replace(b"1 1 5", b"1 9 5")
        for name in ("a.mtx", "b.mtx"):
            self.assertEqual(self.put(service, name, bad).status, 201)
            self.assertEqual(self.conversion(service, name)["state"], "failed")
        path = self.library / "a.mtx"
        times = path.stat()
        path.write_bytes(good)  # by hand, as many bytes
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        self.assertEqual(self.conversion(service, "a.mtx"), {})
        self.assertEqual(self.conversion(service, "b.mtx")["state"], "failed")
        path.write_bytes(bad)
        self.assertEqual(self.conversion(service, "a.mtx"), {})  # nobody has tried since
        for name in ("a.mtx", "b.mtx"):
            self.assertEqual(service.ask("DELETE", f"/v1/library/{name}").status, 204)

    def test_conversions_end_when_their_files_are_deleted(self):
        bin = self.path("bin")
        bin.mkdir()
        nice = bin / "nice"
        nice.write_text(f"#!/bin/sh\nwhile [ ! -e {self.path('go')} ]; do sleep 0.1; done\nexec /usr/bin/nice \"$@\"\n")
        nice.chmod(0o755)
        service = self.start("--ranks", 1, "--upload-limit", "3MB", env={"PATH": f"{bin}:{os.environ['PATH']}"})

        def states():
            return {file["source"]: file["conversion"]["state"] for file in service.get("/v1/library").json["files"] if "conversion" in file}

        for name in "abc":
            self.assertEqual(self.put(service, f"{name}.mtx.gz", FILE.read_bytes()).status, 201)
        service.wait_for("a conversion", lambda: states() == {"a.mtx.gz": "running", "b.mtx.gz": "waiting", "c.mtx.gz": "waiting"})
        self.assertEqual(self.delete(service, "b.mtx.gz").status, 204)
        self.assertEqual(states(), {"a.mtx.gz": "running", "c.mtx.gz": "waiting"})
        self.assertEqual(self.put(service, "b.mtx.gz", FILE.read_bytes()).status, 201)  # its old place in the queue is no more
        self.assertEqual(self.delete(service, "a.mtx.gz").status, 204)
        service.wait_for("the next conversion", lambda: states() == {"b.mtx.gz": "waiting", "c.mtx.gz": "running"})
        self.path("go").touch()
        for name in "bc":
            self.assertEqual(self.conversion(service, f"{name}.mtx.gz")["state"], "done")
        self.assertEqual(self.names(service), ["b.mtx.gz", "b.mtx.gz.h5", "c.mtx.gz", "c.mtx.gz.h5"])
        self.assertEqual(self.own_files(), [])

    def test_a_file_in_use_has_other_names(self):
        service = self.start("--ranks", 1, "--upload-limit", "3MB")
        self.assertEqual(self.put(service, "bar.mtx.gz", FILE.read_bytes()).status, 201)
        self.conversion(service, "bar.mtx.gz")
        (self.library / "sub").mkdir()
        os.symlink("bar.mtx.gz", self.library / "alias.mtx.gz")
        for source in ("./bar.mtx.gz", "sub/../bar.mtx.gz", "alias.mtx.gz"):
            self.loaded(service, "bar", source)
            self.assert_problem(self.delete(service, "bar.mtx.gz"), 409, "in_use", "bar.mtx.gz")
            self.assertEqual(service.ask("POST", "/v1/matrices/bar/unload").status, 200)
        self.assertEqual(self.delete(service, "bar.mtx.gz").status, 204)

    def test_a_long_hash_stops_nothing(self):
        service = self.start("--ranks", 1, "--upload-limit", "3MB")
        (self.library / "small.mtx").write_bytes(b"1")
        huge = self.library / "huge.mtx"
        huge.touch()
        os.truncate(huge, 1 << 40)  # hours

        def is_open():
            return any(os.path.realpath(fd) == os.path.realpath(huge) for fd in pathlib.Path(f"/proc/{service.process.pid}/fd").iterdir())

        clients = [service.open() for _ in range(2)]
        for client in clients:
            client.sendall(b"GET /v1/library?source=huge.mtx HTTP/1.1\r\nHost: a\r\n\r\n")
        service.wait_for("the beginning", is_open)
        self.assertEqual(self.put(service, "a.bin", b"1").status, 201)
        self.assertEqual(service.get("/v1/library?source=small.mtx").json["sha256"], hashlib.sha256(b"1").hexdigest())
        clients[0].close()
        self.assertEqual(self.put(service, "b.bin", b"1").status, 201)
        self.assertTrue(is_open())
        clients[1].close()
        service.wait_for("the end", lambda: not is_open())

    def test_a_hash_is_of_what_the_file_has(self):
        service = self.start("--ranks", 1)
        file = self.library / "a.mtx"
        file.write_bytes(b"one")
        os.utime(file, ns=(10**18, 10**18))
        for data in (b"one", b"two"):  # the same size and time
            time.sleep(0.1)  # the clock of the file system is coarse
            file.write_bytes(data)
            os.utime(file, ns=(10**18, 10**18))
            self.assertEqual(service.get("/v1/library?source=a.mtx").json["sha256"], hashlib.sha256(data).hexdigest())
        os.truncate(file, 100_000_000)
        answers = []
        reader = threading.Thread(target=lambda: answers.append(service.get("/v1/library?source=a.mtx")))
        reader.start()
        while reader.is_alive():
            os.utime(file)
            time.sleep(0.001)
        self.assert_problem(answers[0], 409, "changed")
        self.assertEqual(service.get("/v1/library?source=a.mtx").json["sha256"], hashlib.sha256(file.read_bytes()).hexdigest())

    def test_the_hash_of_a_file(self):
        service = self.start("--ranks", 1)
        (self.library / "folder").mkdir()
        for data in (b"one", b"three"):  # the second time the file has changed
            (self.library / "folder" / "a b.mtx").write_bytes(data)
            answer = service.get("/v1/library?source=folder/a%20b.mtx")
            self.assertEqual(answer.json, {"source": "folder/a b.mtx", "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()})
        for source in ("none.mtx", "../x", "/etc/passwd", "folder"):
            self.assert_problem(service.get(f"/v1/library?source={source}"), 404, "no_file", source)
        self.assert_problem(service.get("/v1/library?name=x"), 400, "malformed", "source=")

    def test_unfinished_uploads_leave_nothing(self):
        service = self.start("--ranks", 1, "--upload-limit", "3MB")
        with service.open() as client:
            client.sendall(b"PUT /v1/library/half.bin HTTP/1.1\r\nHost: a\r\nContent-Length: 2500000\r\n\r\n" + bytes_of(1_500_000))
        service.wait_for("the end of the upload", lambda: not any(
            "library" in os.readlink(f"/proc/{service.process.pid}/fd/{fd}") and "deleted" in os.readlink(f"/proc/{service.process.pid}/fd/{fd}")
            for fd in os.listdir(f"/proc/{service.process.pid}/fd") if os.path.islink(f"/proc/{service.process.pid}/fd/{fd}")))
        self.assertEqual(os.listdir(self.library), [])
        self.assertEqual(self.names(service), [])
        self.assertEqual(service.get("/v1/ranks").json["arena"]["used"], 0)

    def test_nothing_is_taken_unless_it_is_allowed(self):
        service = self.start("--ranks", 1)
        self.assert_problem(self.put(service, "a.bin", b"1"), 403, "no_uploads", "--upload-limit")
        self.fail_with(INPUT, "client", "upload", FILE, "--state", service.state, says="takes no files")
        self.assertEqual(self.names(service), [])
        os.symlink(FILE, self.library / "link.mtx.gz")
        (self.library / "folder").mkdir()
        (self.library / "folder" / "a.mtx").write_text("x")
        self.assertEqual(self.names(service), ["folder/a.mtx"])


class Arrays(LibraryTest):
    OPTIONS = ("--ranks", 2, "--upload-limit", "3MB")

    def send(self, service, body, name="bar", query=""):
        return service.ask("PUT", f"/v1/matrices/{name}{query}", body, Content_Type="application/octet-stream")

    def test_products_and_a_restart(self):
        service = self.start(*self.OPTIONS)
        x = self.vector(1)[0]
        self.library.joinpath("bar.mtx.gz").write_bytes(FILE.read_bytes())
        self.loaded(service, "file", "bar.mtx.gz")
        expected = service.multiply("file", x).body
        for number, types in enumerate((("i64", "i32"), ("i32", "i64"), ("i32", "i32"), ("i64", "i64"))):
            answer = self.send(service, arrays_of(self.matrix, *types))  # the second one replaces the first
            self.assertEqual(answer.status, 201, answer)
            self.assertEqual((answer.json["state"], answer.json["nnz"], answer.json["of_arrays"], answer.json["saved"]), ("ready", 33525, True, True))
            self.assertEqual(service.multiply("bar", x).body, expected)
            service.wait_for("the end of the old file", lambda: len(self.own_files()) == 1)
        self.assertNotIn(self.own_files()[0], " ".join(self.names(service)))
        self.assertGreater(service.get("/v1/matrices/bar").json["ranks"][0]["device_bytes"], 0)
        os.kill(service.workers()[0], signal.SIGKILL)
        service.wait_for("new ranks", lambda: service.get("/v1/ranks").json["restarts"] == 1 and service.ready())
        self.assertEqual(service.multiply("bar", x).body, expected)
        self.assertEqual(service.terminate(), 0)
        service.close()
        service = self.start(*self.OPTIONS)
        self.assertEqual(service.multiply("bar", x).body, expected)
        self.assertEqual(service.ask("POST", "/v1/matrices/bar/unload").status, 200)
        service.wait_for("the end of the file", lambda: self.own_files() == [])

    def test_the_settings_of_a_load(self):
        service = self.start(*self.OPTIONS)
        answer = self.send(service, arrays_of(self.matrix, values="f32"), query="?type=f32&solvable=1&pinned=1&updatable=0")
        self.assertEqual((answer.status, answer.json["type"], answer.json["solvable"], answer.json["pinned"], answer.json["updatable"]),
                         (201, "f32", True, True, False), answer)
        for query, says in (("?solvable=yes", "solvable must be 0 or 1"), ("?type=f16", "f16"), ("?source=x.h5", "the arrays are the body"), ("?walt=1", '"walt"')):
            self.assert_problem(self.send(service, arrays_of(self.matrix), query=query), 400, "malformed", says)
        empty = scipy.sparse.csr_matrix((5, 3))
        self.assertEqual(self.send(service, arrays_of(empty), "empty").json["rows"], 5)

    def test_wrong_arrays_name_the_place(self):
        service = self.start(*self.OPTIONS)
        good = self.matrix[:20].tocsr()
        self.assertEqual(self.send(service, arrays_of(good)).status, 201)
        kept = self.own_files()

        def changed(**arrays):
            wrong = good.copy()
            for name, (at, value) in arrays.items():
                getattr(wrong, name)[at] = value
            return arrays_of(wrong, nonzeros=good.nnz)

        first, second = int(good.indptr[3]), int(good.indptr[4])
        for body, says in ((changed(indices=(first + 1, 975)), f"row 3, entry {first + 1}: column 975 is out of range [0, 975)"),
                           (changed(indices=(first, -1)), f"row 3, entry {first}: column -1 is out of range"),
                           (changed(indices=(first + 1, good.indices[first])), f"row 3, entry {first + 1}: column {good.indices[first]} comes twice"),
                           (changed(data=(second, np.nan)), f"row 4, entry {second}: the value nan is not finite"),
                           (changed(indptr=(4, first - 1)), "row 3: its offsets"), (changed(indptr=(0, 1)), "the first offset is 1"),
                           (changed(indptr=(4, 10**9)), "offset 4 is 1000000000, which is out of range"), (changed(indptr=(20, good.nnz - 1)), "the last offset is"),
                           (arrays_of(good, rows=21), "would be 22 offsets"), (arrays_of(good, rows=-1), "rows=-1"), (arrays_of(good, nonzeros=10**18), "nonzeros="),
                           (arrays_of(good, values="f64", cols="x"), "cols=x"), (arrays_of(good)[:-1], "would be"), (b"x" * 100, "does not begin with a line as"),
                           (b"%%Shardmat CSR rows=1\n", "must say rows, cols and nonzeros")):
            with self.subTest(says=says):
                self.assert_problem(self.send(service, body, "wrong"), 422, "bad_matrix", says)
                self.assert_problem(self.send(service, body), 422, "bad_matrix", says)  # in place of one that is loaded, which stays
        service.wait_for("the end of the files", lambda: self.own_files() == kept)
        x = self.vector(1)[0]
        np.testing.assert_allclose(np.frombuffer(service.multiply("bar", x).body), good @ x, atol=1e-9)
        shuffled = good.copy()  # rows need not be sorted
        for row in range(20):
            part = slice(good.indptr[row], good.indptr[row + 1])
            shuffled.indices[part], shuffled.data[part] = good.indices[part][::-1], good.data[part][::-1]
        self.assertEqual(self.send(service, arrays_of(shuffled), "shuffled").status, 201)
        self.assertEqual(service.multiply("shuffled", x).body, service.multiply("bar", x).body)

    def test_arrays_are_no_source(self):
        """The tokens of two users: neither gets what the other sent."""
        service = self.start(*self.OPTIONS)
        self.assertEqual(self.send(service, arrays_of(self.matrix), "left").status, 201)
        [folder], [name] = self.library.glob(".shardmat-*"), self.own_files()
        (self.library / "sub").mkdir()
        for source in (f"{folder.name}/{name}", f"./{folder.name}/{name}", f"sub/../{folder.name}/{name}", f"{folder.name}//{name}"):
            self.assert_problem(service.load("right", source), 400, "malformed", "a folder of the service")
            self.assert_problem(service.ask("POST", "/v2/repository/models/right/load", json.dumps({"parameters": {"source": source}})), 400, "malformed", "a folder of the service")
            self.assert_problem(service.get(f"/v1/library?source={source}"), 404, "no_file", "no such file")

    def test_a_failed_matrix_stays_until_there_is_another(self):
        service = self.start(*self.OPTIONS)
        self.assertEqual(self.send(service, arrays_of(self.matrix)).status, 201)
        x = self.vector(1)[0]
        expected = service.multiply("bar", x).body
        [name] = self.own_files()
        [file] = self.library.glob(f".shardmat-*/{name}")
        good = file.read_bytes()
        file.write_bytes(good[:-1])
        self.assertEqual(service.terminate(), 0)
        service.close()
        service = self.start(*self.OPTIONS)
        bad = arrays_of(self.matrix)[:-1]
        for attempt in range(2):
            self.assertEqual(service.get("/v1/matrices/bar").json["state"], "failed")
            self.assertTrue(service.get("/v1/matrices/bar").json["saved"])
            self.assert_problem(self.send(service, bad), 422, "bad_matrix")
            self.assert_problem(service.load("bar", "none.mtx"), 422, "bad_matrix")
            self.assertEqual(service.ask("POST", "/v2/repository/models/bar/load").status, 422)  # as it was
            self.assertEqual(self.send(service, arrays_of(self.matrix), f"other{attempt}").status, 201)  # writes the list
        self.assertIn(name, (service.state / "matrices.json").read_text())
        file.write_bytes(good)
        self.assertEqual(service.terminate(), 0)
        service.close()
        service = self.start(*self.OPTIONS)
        self.assertEqual(service.multiply("bar", x).body, expected)
        file.write_bytes(good[:-1])
        self.assertEqual(service.terminate(), 0)
        service.close()
        service = self.start(*self.OPTIONS)
        self.assertEqual(self.send(service, arrays_of(self.matrix)).status, 201)
        self.assertEqual(service.multiply("bar", x).body, expected)
        service.wait_for("the end of the old file", lambda: name not in self.own_files())

    def test_a_failed_matrix_is_loading_while_it_is_tried_again(self):
        service = self.start(*self.OPTIONS)
        file = self.library / "bar.mtx.gz"
        file.write_bytes(FILE.read_bytes())
        self.loaded(service, "bar", file.name)
        file.write_bytes(b"1")
        self.assertEqual(service.terminate(), 0)
        service.close()
        service = self.start(*self.OPTIONS)
        self.assertEqual(service.get("/v1/matrices/bar").json["state"], "failed")
        file.write_bytes(FILE.read_bytes())
        answer = service.ask("POST", "/v1/matrices/bar/load", json.dumps({"source": file.name}))
        self.assertEqual((answer.status, answer.json["state"]), (202, "loading"), answer)
        self.assertNotIn("reason", answer.json)
        self.succeed("client", "wait", "--matrix", "bar", "--state", service.state)

    def test_arrays_of_a_later_backup_are_set_aside(self):
        service = self.start(*self.OPTIONS)
        for matrix in ("bar", "bar.2"):
            self.assertEqual(self.send(service, arrays_of(self.matrix), matrix).status, 201)
        x = self.vector(1)[0]
        expected = service.multiply("bar", x).body
        name, other = self.own_files()
        if name.startswith("bar.2."):
            name, other = other, name
        [folder] = self.library.glob(".shardmat-*")
        (folder / name).rename(folder / "bar.7777.csr")  # the library is later than the state
        (folder / "bar.2.7777.csr").write_bytes(b"1")  # of a matrix that has its own
        for turn in range(2):
            self.assertEqual(service.terminate(), 0)
            service.close()
            service = self.start(*self.OPTIONS)
            self.assertEqual(sorted(self.own_files()), sorted(["bar.7777.csr.aside", other]))
            self.assertEqual(service.get("/v1/matrices/bar").json["state"], "failed")
        self.assertIn(f"bar lacks {folder.name}/{name}", service.report())
        (folder / "bar.7777.csr.aside").rename(folder / name)
        (folder / "bar.7778.csr.aside").write_bytes(b"1")
        self.assertEqual(service.terminate(), 0)
        service.close()
        service = self.start(*self.OPTIONS)
        self.assertEqual(service.multiply("bar", x).body, expected)
        self.assertEqual(sorted(self.own_files()), sorted([name, other]))

    def test_limits(self):
        service = self.start("--ranks", 1, "--upload-limit", "100kB")
        self.assert_problem(self.send(service, arrays_of(self.matrix)), 413, "too_long", "--upload-limit")
        self.assert_problem(self.send(service, b""), 422, "wrong_length")
        self.assertEqual(service.terminate(), 0)
        service.close()
        service = self.start("--ranks", 1)
        self.assert_problem(self.send(service, arrays_of(self.matrix)), 403, "no_uploads", "--upload-limit")
        self.assertEqual(self.own_files(), [])


def bytes_of(count):
    return b"x" * count


if __name__ == "__main__":
    unittest.main()
