"""Disks that are full, memory that is short, streams that are closed, and signals: the right exit code, nothing left."""

import gzip
import shlex
import signal
import subprocess
import time
import unittest

import numpy as np
import scipy.io

from support import (INPUT, LIMIT, OK, PROGRAM, RANK_LOST, RESOURCES, USAGE, CliTest, DATA, address_space_limit,
                     environment, file_size_limit)

HEADER = "%%MatrixMarket matrix coordinate real general\n"
SMALL = HEADER + "2 2 2\n1 1 1.5\n2 2 2.5\n"


class StandardStreams(CliTest):
    """Closed, or on a full disk: the exit code of the same command is kept, or 4 if its report is lost."""

    def code(self, streams, *arguments, ranks=0):
        program = ("mpirun", "-n", str(ranks), PROGRAM) if ranks else (PROGRAM,)
        command = f"ulimit -c 0; exec {shlex.join(map(str, (*program, *arguments)))} {streams}"
        return subprocess.run(["bash", "-c", command], cwd=self.directory, env=environment(), timeout=LIMIT,
                              stdin=subprocess.DEVNULL, capture_output=True).returncode

    def test_messages_that_cannot_be_written_change_no_exit_code(self):
        self.write("a.mtx", SMALL)
        for streams in ("2>&-", "2>/dev/full"):
            for wanted, command in ((INPUT, ("info", "none.mtx")), (INPUT, ("multiply", "none.mtx")), (USAGE, ("solve", "--foo")),
                                    (OK, ("multiply", "a.mtx")), (7, ("solve", "a.mtx", "--max-iterations", "0")),
                                    (INPUT, ("client", "status", "--state", "none")), (INPUT, ("bench", "kernels", "none.h5")),
                                    (USAGE, ("serve", "--foo")), (INPUT, ("eigen", "none.h5")), (INPUT, ("pagerank", "none.h5"))):
                with self.subTest(streams=streams, command=command):
                    undisturbed = self.code("", *command)
                    self.assertIn(undisturbed, (wanted, *([RESOURCES, RANK_LOST] if command[0] == "client" else [])))
                    self.assertEqual(self.code(streams, *command), undisturbed)
        for wanted, command in ((INPUT, ("multiply", "none.mtx")), (OK, ("multiply", "a.mtx"))):
            self.assertEqual(self.code("2>/dev/full", *command, ranks=2), wanted)

    def test_reports_that_cannot_be_written_are_errors_of_the_disk(self):
        self.write("a.mtx", SMALL)
        for streams in (">&-", ">&- 2>&-", "<&- >&- 2>&-", ">/dev/full", ">/dev/full 2>/dev/full"):
            for command in (("info", "a.mtx"), ("multiply", "a.mtx"), ("solve", "a.mtx", "--json"), ("generate", "poisson", "--n", "3", "p.h5"),
                            ("--version",), ("help", "solve")):
                with self.subTest(streams=streams, command=command):
                    self.assertIn(self.code(streams, *command), (OK, RESOURCES))
            self.assertEqual(self.code(streams, "info", "none.mtx"), INPUT)

    def test_a_file_does_not_take_the_place_of_a_closed_stream(self):
        self.write("a.mtx", SMALL)
        self.assertIn(self.code("<&- >&- 2>&-", "convert", "a.mtx", "b.mtx"), (OK, RESOURCES))
        np.testing.assert_array_equal(scipy.io.mmread(str(self.path("b.mtx"))).toarray(), [[1.5, 0], [0, 2.5]])
        self.assertEqual(self.code("<&- 2>&-", "multiply", "a.mtx", "--x", "ones", "--output", "y.npy"), OK)
        np.testing.assert_array_equal(np.load(self.path("y.npy")), [1.5, 2.5])


class Exhaustion(CliTest):
    def test_full_disk(self):
        for arguments in (["generate", "elasticity", "--n", 10, "o.h5"], ["partition", DATA / "stokes.mtx.gz", "o.h5"]):
            for limit in (1000, 100_000, 500_000):
                self.fail_with(RESOURCES, *arguments, preexec_fn=file_size_limit(limit), says=["o.h5", "cannot write"])

    def test_full_standard_output(self):
        self.write("a.mtx", SMALL)
        self.succeed("partition", "a.mtx", "a.h5")
        for command in (["info", "a.h5"], ["info", "a.h5", "--json"], ["multiply", "a.h5", "--iterations", "1"],
                        ["multiply", "a.h5", "--iterations", "1", "--json", "-"], ["verify-file", "a.h5"], ["--help"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([PROGRAM, *command], cwd=self.directory, env=environment(), stdout=full,
                                      stderr=subprocess.PIPE, text=True, timeout=LIMIT)
            self.assertEqual(done.returncode, RESOURCES, f"{command}: {done.stderr}")
            self.assertIn("standard output", done.stderr)

    def test_full_disk_for_results(self):
        # Without shared memory between ranks, whose files the limit would meet first.
        env = {"OMPI_MCA_btl": "self", "PMIX_MCA_gds": "hash"}
        for suffix in ("h5", "npy", "mtx"):
            self.fail_with(RESOURCES, "multiply", "banded:n=100000", "--output", f"y.{suffix}", env=env,
                           preexec_fn=file_size_limit(50_000), says=[f"cannot write y.{suffix}", "make room"])
        self.fail_with(RESOURCES, "multiply", "poisson:n=4", "--json", "r.json", env=env, preexec_fn=file_size_limit(500), only=False,
                       says=["r.json", "cannot write"])

    def test_signals_leave_nothing(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for arguments in (["generate", "elasticity", "--n", "NODES", "o.h5"], ["convert", "elasticity:n=NODES", "o.mtx"],
                              ["convert", "elasticity:n=NODES", "o.npz"]):
                for nodes in (60, 90, 140):  # a busy machine may be through before this test can send a signal
                    if self.end_while_writing(number, [word.replace("NODES", str(nodes)) for word in arguments]):
                        break
                    self.path(arguments[-1].split(":")[0]).unlink()
                else:
                    self.fail(f"{arguments} ended before it got signal {number}")

    def end_while_writing(self, number, arguments):
        """False if the command ended before it got the signal."""
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], cwd=self.directory, env=environment(),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + LIMIT
        while not self.files():
            self.assertIsNone(process.poll(), arguments)
            self.assertLess(time.monotonic(), end)
            time.sleep(0.005)
        process.send_signal(number)
        if process.wait(LIMIT) == OK:
            return False
        self.assertEqual(process.returncode, -number, arguments)
        self.assertEqual(self.files(), [], arguments)
        return True

    def test_full_disk_keeps_the_old_file(self):
        self.succeed("generate", "poisson", "--n", 4, "o.h5")
        before = self.path("o.h5").read_bytes()
        self.fail_with(RESOURCES, "generate", "elasticity", "--n", 10, "o.h5", preexec_fn=file_size_limit(200_000), says="o.h5")
        self.assertEqual(self.path("o.h5").read_bytes(), before)

    def test_header_that_asks_for_petabytes(self):
        self.write("huge.mtx", HEADER + "100000000000000 100000000000000 1\n1 1 1\n")
        self.fail_with(RESOURCES, "partition", "huge.mtx", "o.h5", says=["huge.mtx", "1.6 PB", "memory"])
        self.write("huge.mtx.gz", gzip.compress(self.path("huge.mtx").read_bytes()))
        self.fail_with(RESOURCES, "partition", "huge.mtx.gz", "o.h5", says=["huge.mtx.gz", "memory"])

    def test_columns_that_take_more_memory_than_their_entries(self):
        """Every command answers in little memory: with what it can, or with what is missing."""
        self.write("a.mtx", HEADER + f"2 {2**31} 2\n1 1 1\n2 {2**31} 2\n")
        self.write("b.mtx", HEADER + f"2 {2**60} 2\n1 1 1\n2 {2**60} 2\n")
        self.write("c.mtx", HEADER + f"2 {2**60 + 1} 1\n1 1 1\n")
        self.fail_with(INPUT, "partition", "c.mtx", "c.h5", says=["c.mtx", "at most 2^60"])
        for name in ("a", "b"):
            self.succeed("partition", f"{name}.mtx", f"{name}.h5")
            self.assertIn("Left out: the pattern", self.succeed("info", f"{name}.h5", preexec_fn=address_space_limit(2**31)).out)
            self.fail_with(INPUT, "convert", f"{name}.h5", "--format", "all", says=["less than 2^31"])
        self.fail_with(RESOURCES, "multiply", "b.h5", says=["x of ", "host memory"], env={"OMP_NUM_THREADS": "1"})
        self.fail_with(RESOURCES, "partition", "b.mtx", "--parts", 2, "d.h5", says=["columns", "host memory"])

    def test_generators_of_more_rows_than_memory(self):
        for generator in ("random:n=1000000000000000", "rmat:scale=40", "poisson27:n=50000"):
            self.fail_with(RESOURCES, "info", generator, says=["counting the nonzeros of", "host memory"])

    def test_matrix_larger_than_the_memory(self):
        self.fail_on_every_rank(RESOURCES, "multiply", "elasticity:n=3000", ranks=2, says=["memory", "972 GB"])


if __name__ == "__main__":
    unittest.main()
