"""The package in processes with threads, with children, and at their end."""

import concurrent.futures
import faulthandler
import os
import subprocess
import sys
import threading
import unittest

import numpy as np

import shardmat
from checks import tridiagonal


class Processes(unittest.TestCase):
    def test_import_loads_no_library(self):
        code = ("import sys, shardmat\n"
                "assert 'shardmat._shardmat' not in sys.modules and 'numpy' not in sys.modules\n"
                "assert 'libshardmat' not in open('/proc/self/maps').read()\n"
                "shardmat.version()\n"
                "assert 'libshardmat' in open('/proc/self/maps').read()\n")
        subprocess.run([sys.executable, "-c", code], check=True)

    def test_child_after_fork(self):
        a = shardmat.Matrix.from_scipy(tridiagonal(10))
        child = os.fork()
        if child == 0:
            try:
                a @ np.ones(10)
            except shardmat.UsageError as error:
                os._exit(0 if "forked" in str(error) else 1)
            os._exit(2)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        np.testing.assert_allclose(a @ np.ones(10), tridiagonal(10) @ np.ones(10))

    def test_threads(self):
        a = tridiagonal(1000)
        m = shardmat.Matrix.from_scipy(a)
        wrong = []

        def work(seed):
            x = np.random.default_rng(seed).random(1000)
            for _ in range(50):
                if not np.allclose(m @ x, a @ x):
                    wrong.append(seed)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_solves_of_threads(self):
        a = tridiagonal(300)
        m = shardmat.Matrix.from_scipy(a)
        faulthandler.dump_traceback_later(600, exit=True)  # Python's lock may be what is waited for

        def work(seed):
            b = np.random.default_rng(seed).random(300)
            return np.linalg.norm(a @ m.solve(b, solver="gmres", monitor=lambda iterations, norms: None) - b)

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            residuals = list(pool.map(work, range(200)))
        faulthandler.cancel_dump_traceback_later()
        self.assertLess(max(residuals), 1e-6)

    def test_order_of_destruction(self):
        context = shardmat.Context(backend="host", threads=1)
        m = shardmat.Matrix.from_scipy(tridiagonal(10), context=context)
        product = m.product()
        context.close()
        m.close()
        self.assertEqual(product.multiply(np.ones(10)).shape, (10,))
        self.assertIn("closed", repr(context) + repr(m))
        with self.assertRaisesRegex(ValueError, "closed"):
            shardmat.Matrix.from_scipy(tridiagonal(10), context=context)


class DaemonThreads(unittest.TestCase):
    """Threads that are in calls of the library while the interpreter ends do not change how the process ends."""

    CODE = """
import threading, time
import numpy as np, scipy.sparse as sp, shardmat
a = (sp.random(200, 200, 0.05, random_state=1) + 4 * sp.eye(200)).tocsr()
A, x = shardmat.Matrix.from_scipy(a), np.ones(200)
running = threading.Semaphore(0)
def multiply():
    A @ x
def solve():
    A.solve(x, solver="gmres", monitor=lambda n, norms: False)
def make():
    shardmat.Matrix.from_scipy(a) @ x
def for_ever(call):
    call()
    running.release()
    while True:
        call()
for call in (WORK):
    threading.Thread(target=for_ever, args=(call,), daemon=True).start()
    running.acquire()
"""

    def test_exit_code(self):
        for work in ("multiply,", "solve,", "make,", "multiply, solve, make, solve"):
            for end, code in (("", 0), ("raise SystemExit(3)", 3), ("A.close()", 0)):
                for _ in range(3):
                    done = subprocess.run([sys.executable, "-c", self.CODE.replace("WORK", work) + end], capture_output=True, text=True,
                                          timeout=600)
                    self.assertEqual(done.returncode, code, f"{work} {end}: {done.stderr}")


if __name__ == "__main__":
    unittest.main()
