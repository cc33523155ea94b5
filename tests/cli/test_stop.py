#!/usr/bin/env python3
"""Signals end solve, eigen and pagerank at the next iteration: what was found so far is written, whoever reads the output."""

import fcntl
import json
import os
import signal
import struct
import subprocess
import termios
import time
import unittest

from support import LIMIT, PROGRAM, CliTest, environment, with_growing_deadline

NOT_CONVERGED = 7
FOREVER = 10**9
COMMANDS = {
    "solve": ["solve", "elasticity:n=12", "--null-space", "none", "--solver", "gmres", "--restart", 2, "--max-iterations", FOREVER, "--rtol",
              "1e-14", "--no-measure", "--no-advice", "--output", "out.npy"],
    "eigen": ["eigen", "poisson7:n=12", "--method", "power", "--tolerance", "1e-300", "--max-iterations", FOREVER,
              "--no-measure", "--vectors", "out.npy"],
    "pagerank": ["pagerank", "rmat:scale=8", "--damping", "0.999999999", "--tolerance", "1e-300", "--max-iterations",
                 FOREVER, "--no-measure", "--output", "out.npy"],
}


def waiting_bytes(stream):
    return struct.unpack("i", fcntl.ioctl(stream, termios.FIONREAD, b"\0" * 4))[0]


class Stop(CliTest):
    def start(self, *arguments, ranks=0, **more):
        launcher = ["mpirun", "-n", ranks] if ranks else []
        process = subprocess.Popen(list(map(str, [*launcher, PROGRAM, *arguments, "--json", "r.json"])), cwd=self.directory,
                                   env=environment(**more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        return process

    def require_results(self):
        report = json.loads(self.path("r.json").read_text())
        self.assertIn("interrupted", json.dumps(report))
        self.assertGreater(self.path("out.npy").stat().st_size, 100)

    def clear(self):
        for name in ("r.json", "out.npy"):
            self.path(name).unlink(missing_ok=True)

    def test_a_full_pipe_keeps_no_signal_waiting(self):
        for name, number in (("solve", signal.SIGTERM), ("eigen", signal.SIGINT), ("pagerank", signal.SIGUSR1)):
            with self.subTest(name):
                self.clear()
                process = self.start(*COMMANDS[name], "--monitor")
                before, now, end = -1, 0, time.monotonic() + LIMIT
                # Nobody reads: then the program waits. It also pauses where another preconditioner is made.
                while process.poll() is None and (now <= 1 << 12 or now != before) and time.monotonic() < end:
                    time.sleep(1)
                    before, now = now, waiting_bytes(process.stderr)
                self.assertGreater(now, 1 << 12)
                process.send_signal(number)
                self.assertEqual(process.wait(LIMIT), NOT_CONVERGED)
                self.require_results()

    def test_one_signal_that_comes_twice(self):
        """timeout sends a signal to its child, and to the group of the child."""
        for name, arguments in COMMANDS.items():
            with self.subTest(name):
                self.clear()
                process = self.start(*arguments, "--monitor")
                line = process.stderr.readline()
                while line and not line.strip()[:1].isdigit():
                    line = process.stderr.readline()
                process.send_signal(signal.SIGTERM)
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=LIMIT)
                self.assertEqual(process.returncode, NOT_CONVERGED)
                self.require_results()

    def test_a_second_sigterm_leaves_time_to_write(self):
        """Slurm repeats it. Nobody reads the report, so the program is still there."""
        read, write = os.pipe()
        os.set_blocking(write, False)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(write, b" " * 4096)
        os.set_blocking(write, True)
        process = subprocess.Popen([PROGRAM, *map(str, COMMANDS["solve"]), "--monitor"], cwd=self.directory, env=environment(),
                                   stdout=write, stderr=subprocess.PIPE)
        os.close(write)
        self.addCleanup(process.kill)
        self.addCleanup(process.stderr.close)
        while not (line := process.stderr.readline()).strip()[:1].isdigit():
            self.assertTrue(line, "the solver did not start")
        process.send_signal(signal.SIGTERM)
        end = time.monotonic() + LIMIT
        while not self.path("out.npy").exists() and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(1.2)  # more than what counts as one signal that came twice
        process.send_signal(signal.SIGTERM)
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(0.5)
        with open(read, "rb") as reader:
            self.assertIn(b"interrupted", reader.read())
        self.assertEqual(process.wait(LIMIT), NOT_CONVERGED)

    def test_mpirun(self):
        """It sends SIGTERM to the ranks, and kills them as many seconds later; until then it reads none of their output."""
        cases = (("solve", 2, signal.SIGINT, "--monitor"), ("solve", 3, signal.SIGTERM, ""),
                 ("eigen", 2, signal.SIGTERM, "--monitor"), ("pagerank", 3, signal.SIGINT, "--monitor"))
        for name, ranks, number, monitor in cases:
            with self.subTest(name, ranks=ranks, number=number):

                def attempt(seconds):
                    self.clear()
                    process = self.start(*COMMANDS[name], *[monitor] * bool(monitor), ranks=ranks, SHARDMAT_PROGRESS="on",
                                         OMPI_MCA_odls_base_sigkill_timeout=str(seconds))
                    seen = b""
                    while seen.count(b"\n") < 50 and seen.count(b"iteration") < 3:  # all ranks iterate
                        read = process.stderr.read(1 << 12)
                        self.assertTrue(read, seen)
                        seen += read
                    process.send_signal(number)
                    process.communicate(timeout=LIMIT)
                    self.assertNotEqual(process.returncode, 0)
                    self.require_results()

                with_growing_deadline(attempt, (5, 60))


if __name__ == "__main__":
    unittest.main()
