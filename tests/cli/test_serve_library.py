"""Files that clients send into the library of the service."""

import hashlib
import os
import unittest

import numpy as np

from support import DATA, INPUT, read_vector, write_vector
from test_serve import ServiceTest

FILE = DATA / "elasticity_bar.mtx.gz"


class Library(ServiceTest):
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

    def test_an_upload_is_loaded_and_multiplied(self):
        service = self.start("--ranks", 2, "--upload-limit", "3MB")
        at = ["--state", service.state]
        self.assertEqual(self.names(service), [])
        self.assertEqual(self.succeed("client", "upload", FILE, "sent.mtx.gz", *at).out, "sent.mtx.gz\n")
        self.assertEqual((self.library / "sent.mtx.gz").read_bytes(), FILE.read_bytes())
        self.assertRegex(self.succeed("client", "library", *at).out, r"^sent\.mtx\.gz +[\d.]+ kB\n$")
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


def bytes_of(count):
    return b"x" * count


if __name__ == "__main__":
    unittest.main()
