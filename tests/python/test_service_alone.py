"""The client of the service: memory that it shares, lost ranks, and the client alone."""

import importlib.util
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest

import numpy as np
from service_client import CG, ServiceClient

import shardmat
from service import at_once
from support import LIMIT, ROOT

PACKAGE = pathlib.Path(shardmat.__file__).parent


class SharedMemory(ServiceClient):
    @classmethod
    def options(cls):
        return ("--access-log", cls.folder / "access.log")

    def bytes_in_memory(self, place, count):
        """Bytes of the bodies, in and out, of the requests with x and something else in memory, as the server counts them."""
        def found():
            lines = [json.loads(line) for line in (self.folder / "access.log").read_text().splitlines()]
            return [(line["bytes_in"], line["bytes_out"]) for line in lines
                    if place in line["path"] and "x_at=" in line["path"]]

        self.server.wait_for("the log", lambda: len(found()) >= count)
        return found()

    def test_nothing_goes_through_the_socket(self):
        with self.service.memory(1 << 20) as memory:
            for k in (None, 1, 3):
                x, y = memory.empty((975,) if k is None else (975, k)), memory.empty((975,) if k is None else (975, k))
                x[...] = self.columns(k)
                expected = self.expected(x.copy())
                self.assertIs(self.A.multiply(x, out=y, timeout=1e10), y)
                self.assertEqual(y.tobytes(order="F"), expected)
                self.assertEqual((self.A @ x).tobytes(order="F"), expected)  # the answer is a body
                self.assertEqual(self.A.multiply(x.copy(), out=y).tobytes(order="F"), expected)  # x is a body
                before = y.copy()
                self.A.multiply(x, out=y, alpha=2.0, beta=3.0)
                np.testing.assert_allclose(y, 2 * self.matrix @ x + 3 * before, rtol=1e-12, atol=1e-9)
            self.assertEqual(self.bytes_in_memory("y_at=", 6), [(0, 0)] * 6)
            part = memory.empty((975, 4))
            part[...] = self.columns(4)
            self.assertEqual((self.A @ part[:, 1:3]).tobytes(order="F"), self.expected(part[:, 1:3].copy()))
            self.assertEqual((self.A @ part.T.copy().T).tobytes(), (self.A @ part).tobytes())
            with self.assertRaisesRegex(MemoryError, "does not fit"):
                memory.empty(1 << 20)
            with self.assertRaisesRegex(shardmat.service.RefusedError, "overlap"):
                self.A.multiply(x, out=x)
        x[...] = 1  # stays valid, and is an array as any other now
        self.assertEqual((self.A @ x).tobytes(order="F"), self.expected(x))

    def test_nothing_of_solves_goes_through_the_socket(self):
        G = self.service.load("grid", "grid.h5", solvable=True)
        links = self.service.load("links", "links.h5", solvable=True)
        n = G.shape[0]
        with self.service.memory(1 << 20) as memory, self.service.memory(1 << 20) as other:
            for k in (None, 3):
                shape = (n,) if k is None else (n, k)
                b, x, weights = (memory.empty(shape) for _ in range(3))
                b[...] = self.columns(k, n=n)
                weights[...] = abs(b)
                expected = G.solve(b.copy(), alone=1, **CG)
                self.assertIs(G.solve(b, out=x, alone=1, **CG), x)
                self.assertEqual(x.tobytes(order="F"), expected.tobytes(order="F"))
                self.assertIs(G.solve(b, x, out=x, alone=1, **CG), x)  # from the solution
                self.assertEqual(x.tobytes(order="F"), expected.tobytes(order="F"))
                scores = links.pagerank(weights.copy())
                self.assertIs(links.pagerank(weights, out=x), x)
                self.assertEqual(x.tobytes(order="F"), scores.tobytes(order="F"))
                self.assertIs(G.solve(b, out=b, alone=1, **CG), b)
                self.assertEqual(b.tobytes(order="F"), expected.tobytes(order="F"))
            self.assertEqual(self.bytes_in_memory("b_at=", 8), [(0, 0)] * 8)
            b, apart = memory.empty(n), other.empty(n)
            b[...] = self.columns(n=n)
            expected = G.solve(b.copy(), alone=1, **CG).tobytes()
            self.assertEqual(G.solve(b, out=apart, alone=1, **CG).tobytes(), expected)
            plain = np.empty(n, "float32")
            np.testing.assert_array_equal(G.solve(b, out=plain, alone=1, **CG), np.frombuffer(expected).astype("float32"))
            with self.assertRaises(shardmat.NotConvergedError) as caught:
                G.solve(b, out=apart, max_iterations=1, **CG)
            self.assertEqual(caught.exception.x.shape, (n,))
            self.assertEqual(apart.tobytes(), expected)  # what has failed is not written
            for wrong in (np.empty(n + 1), [0.0] * n):
                with self.assertRaisesRegex(ValueError, "out must be"):
                    G.solve(b, out=wrong, **CG)

    def test_threads(self):
        memory = self.service.memory(1 << 20)
        x = [memory.empty(975) for _ in range(8)]
        y, wrong = [memory.empty(975) for _ in range(8)], []
        for seed, one in enumerate(x):
            one[...] = self.columns(seed=seed)
        expected = [self.expected(one) for one in x]

        def client(number):
            for _ in range(20):
                y[number][...] = 0
                if self.A.multiply(x[number], out=y[number]).tobytes() != expected[number]:
                    wrong.append(number)

        at_once(8, client)
        self.assertEqual(wrong, [])
        with self.assertRaises(shardmat.service.TooLargeError):
            self.service.memory(1 << 50)
        memory.close()


class LostRanks(ServiceClient):
    def test_products_go_on(self):
        x = self.columns()
        patient = self.connected(retries=1000).matrix("bar")  # ranks take long to start on a busy machine
        expected = (patient @ x).tobytes()
        vector = self.A.vector(x)
        for _ in range(2):
            os.kill(self.server.workers()[0], signal.SIGKILL)
            self.assertEqual((patient @ x).tobytes(), expected)  # waits until there are new ranks
        with self.assertRaises(shardmat.service.NotFoundError) as caught:
            vector.get()
        self.assertEqual(caught.exception.status, 410)

    def test_without_retries(self):
        hasty = self.connected(retries=0)
        A = hasty.matrix("bar")
        os.kill(self.server.process.pid, signal.SIGSTOP)
        try:
            with self.assertRaisesRegex(shardmat.service.TimedOut, "has not answered in time"):
                A.multiply(self.columns(), timeout=0.2)
        finally:
            os.kill(self.server.process.pid, signal.SIGCONT)
        os.kill(self.server.workers()[0], signal.SIGKILL)

        def refused():
            try:
                A @ self.columns()
            except shardmat.RankLostError as error:
                self.assertEqual(error.status, 503)
                return True
            except shardmat.Error:
                return False
            return False

        self.server.wait_for("a refusal", refused)
        self.server.wait_until_ready()


class Alone(ServiceClient):
    PROGRAM = """
import sys, numpy
sys.path = [sys.argv[1]] + [path for path in sys.path if path != sys.argv[2]]
import shardmat_service
A = shardmat_service.connect(sys.argv[3], timeout=600).matrix("bar")
print(repr(float((A @ numpy.ones(975)).sum())))
assert not [name for name in sys.modules if name == "shardmat" or name.startswith("shardmat.") or "_shardmat" in name or name == "scipy"], sys.modules
"""

    def product_of(self, folder):
        out = subprocess.run([sys.executable, "-c", self.PROGRAM, folder, PACKAGE.parent, self.server.socket], capture_output=True,
                             text=True, timeout=LIMIT)
        self.assertEqual(out.stderr, "")
        self.assertEqual(float(out.stdout), float((self.A @ np.ones(975)).sum()))

    def test_these_files_alone(self):
        shutil.copytree(PACKAGE / "service", self.path("shardmat_service"), ignore=shutil.ignore_patterns("__pycache__"))
        self.product_of(self.directory)

    def test_a_wheel_of_them(self):
        source = PACKAGE / "service"
        if not (source / "pyproject.toml").exists():  # in the build folder are only files that are installed
            source = ROOT / "tools" / "python" / "shardmat" / "service"
        pip = [sys.executable, "-m", "pip"]
        if subprocess.run([*pip, "--version"], capture_output=True).returncode != 0 or importlib.util.find_spec("setuptools") is None:
            self.skipTest("pip or setuptools are missing")
        shutil.copytree(source, self.path("source"), ignore=shutil.ignore_patterns("__pycache__"))
        result = subprocess.run([*pip, "install", "--no-index", "--no-build-isolation", "--no-deps", "--target", self.path("target"), self.path("source")],
                                capture_output=True, text=True, timeout=LIMIT, env={**os.environ, "PIP_CACHE_DIR": str(self.path("cache"))})
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.product_of(self.path("target"))

    def test_the_package_loads_no_library(self):
        program = "import shardmat, sys; shardmat.connect('http://a'); assert not any('_shardmat' in name or name == 'numpy' for name in sys.modules)"
        subprocess.run([sys.executable, "-c", program], check=True, timeout=LIMIT)


if __name__ == "__main__":
    unittest.main()
