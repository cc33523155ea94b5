"""Files and arrays that clients send to the service."""

import ctypes
import hashlib
import json
import os
import platform
import signal
import struct
import unittest

import numpy as np
import scipy.sparse

from support import DATA, INPUT, read_vector, write_vector
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
        self.succeed("multiply", self.library / "sent.mtx.gz.h5", "--verify", ranks=2)  # compares the checksums
        self.loaded(service, "bar", "sent.mtx.gz")
        x = self.vector(1)[0]
        np.testing.assert_allclose(self.y_of(service.multiply("bar", x)), self.matrix @ x, rtol=0, atol=1e-9)
        write_vector(self.path("x.npy"), x)
        self.succeed("multiply", "sent.mtx.gz", "--remote", service.state, "--x", "x.npy", "--output", "y.npy")
        self.assertEqual(read_vector(self.path("y.npy")).tobytes(), service.multiply("bar", x).body)
        self.fail_with(INPUT, "client", "upload", FILE, "sent.mtx.gz", *at, says="the library has a file sent.mtx.gz")
        self.fail_with(INPUT, "client", "upload", "none.mtx", *at, says="none.mtx")

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
        self.assertEqual(self.names(service), [FILE.name + ".h5"])
        self.fail_with(INPUT, "client", "delete-file", FILE.name, *url, "files.token", says="has no file")
        os.symlink(FILE, self.library / "link.mtx.gz")
        (self.library / ".hidden").write_text("1")
        for name in ("link.mtx.gz", ".hidden", "..", "a%2fb"):
            self.assertIn(service.ask("DELETE", f"/v1/library/{name}").status, (400, 404), name)
        self.assertTrue((self.library / "link.mtx.gz").exists() and (self.library / ".hidden").exists())

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
