"""`shardmat multiply` or `shardmat solve` loses one of three ranks: each survivor says so once within the deadline and leaves with code 5, and no
result appears under its real name."""

import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import at_once  # noqa: E402
from ranks import Ranks  # noqa: E402

PROGRAM = os.environ.get("TEST_PROGRAM", "shardmat")
TIMEOUT = 3  # seconds, of the program, where ranks have little to do between two messages
TIMEOUT_OF_LOADING = 12  # where a rank may have several CPU seconds more to do than another one, on a busy machine
GRACE = 20.0  # for the deadline to be noticed, clean-up and a busy machine
START = 60.0
RANKS = 3
AT_ONCE = 3
FOR_EVER = 1_000_000_000  # iterations


class LoseOne(unittest.TestCase):
    timeout = TIMEOUT

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="multiply_lost_"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def start(self, matrix, *arguments, command="multiply"):
        # The progress bar tells in which phase the ranks are.
        env = dict(os.environ, SHARDMAT_PROGRESS="on", OMP_NUM_THREADS="1")
        outputs = ["--output", self.directory / "y.h5", "--json", self.directory / "report.json"]
        words = [PROGRAM, command, matrix, "--timeout", self.timeout, *outputs, *arguments]
        return Ranks(words, RANKS, self.directory / "ranks", env=env)

    def wait_for_phase(self, ranks, phase):
        end = time.monotonic() + START
        while phase not in ranks.errors(0):
            self.assertLess(time.monotonic(), end, f"no {phase}\n{ranks.report()}")
            self.assertIsNone(ranks.status(0), ranks.report())
            time.sleep(0.02)

    def lose_one(self, ranks, number, victim, before=0):
        began = time.monotonic()
        ranks.send_signal(victim, number)
        survivors = [r for r in range(RANKS) if r != victim]
        statuses = ranks.wait_for_exit(survivors, before + self.timeout + GRACE + 20)
        took = time.monotonic() - began
        self.assertEqual(statuses, [5] * len(survivors), ranks.report())
        self.assertLess(took, before + self.timeout + GRACE, ranks.report())
        for rank in survivors:
            lines = [line for line in ranks.errors(rank).splitlines() if "shardmat: " in line]
            self.assertEqual(len(lines), 1, ranks.report())
            self.assertRegex(lines[0], rf"shardmat: rank {rank} (on|\().+(did not finish within {self.timeout} s|failed)", ranks.report())
            self.assertIn("--timeout", lines[0])
            self.assertEqual(ranks.output(rank), "", "a report in spite of it")
        self.assertEqual([p.name for p in self.directory.iterdir()], ["ranks"])


class WhileIterating(LoseOne):
    def lose(self, number, victim, *arguments):
        with self.start("elasticity:n=8", "--iterations", FOR_EVER, *arguments) as ranks:
            self.wait_for_phase(ranks, "iterating")
            self.lose_one(ranks, number, victim)

    def test_stopped(self):
        self.lose(signal.SIGSTOP, 1)

    def test_killed(self):
        self.lose(signal.SIGKILL, 2)

    def test_first_rank_stopped_in_power_iteration(self):
        self.lose(signal.SIGSTOP, 0, "--mode", "power")

    def test_killed_in_power_iteration(self):
        self.lose(signal.SIGKILL, 1, "--mode", "power")


class WhileSolving(LoseOne):
    def lose(self, number, victim):
        slow = ["--solver", "gmres", "--restart", 2, "--rtol", 1e-14, "--max-iterations", FOR_EVER]
        with self.start("elasticity:n=12,clamp=0.01", *slow, command="solve") as ranks:
            self.wait_for_phase(ranks, "solving")
            self.lose_one(ranks, number, victim)

    def test_stopped(self):
        self.lose(signal.SIGSTOP, 0)

    def test_killed(self):
        self.lose(signal.SIGKILL, 2)


def cpu_seconds(ranks, rank):
    """CPU time of a rank, 0 before it has started. Fails if the rank has ended."""
    pid = ranks.pid(rank)
    if pid is None:
        return 0
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        raise AssertionError(f"rank {rank} ended too early\n{ranks.report()}") from None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class WhileLoading(LoseOne):
    timeout = TIMEOUT_OF_LOADING
    LOADING = 30.0  # what the survivors may still have to load before they miss the lost rank

    def lose(self, number):
        with self.start("rmat:scale=20,edge_factor=32") as ranks:  # takes several CPU seconds to generate, MPI_Init much less
            end = time.monotonic() + START
            while any(cpu_seconds(ranks, r) < 0.8 for r in range(RANKS)):
                self.assertLess(time.monotonic(), end, ranks.report())
                time.sleep(0.01)
            self.lose_one(ranks, number, 1, self.LOADING)

    def test_stopped(self):
        self.lose(signal.SIGSTOP)

    def test_killed(self):
        self.lose(signal.SIGKILL)


class AtTheStart(unittest.TestCase):
    def test_stopped(self):
        start = 60 + TIMEOUT  # of MPI
        stop = 'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then kill -STOP $$; fi; exec "$@"'
        directory = pathlib.Path(tempfile.mkdtemp(prefix="multiply_lost_"))
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        with Ranks(["sh", "-c", stop, "sh", PROGRAM, "multiply", "poisson:n=3", "--timeout", TIMEOUT], RANKS, directory) as ranks:
            self.assertEqual(ranks.wait_for_exit([0, 2], START + start + GRACE), [5, 5], ranks.report())
            for rank in (0, 2):
                self.assertRegex(ranks.errors(rank), rf"shardmat: rank {rank}: starting MPI did not finish within {start} s")


if __name__ == "__main__":
    at_once.main(AT_ONCE)
