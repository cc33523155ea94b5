"""`shardmat multiply` or `shardmat solve` loses one of three ranks: each survivor says so once after the deadline and leaves with code 5, and no
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
from growing_deadline import with_growing_deadline  # noqa: E402
from ranks import Ranks  # noqa: E402

PROGRAM = os.environ.get("TEST_PROGRAM", "shardmat")
DEADLINES = (3, 15, 60)  # seconds, of the program, where ranks have little to do between two messages
DEADLINES_OF_LOADING = (12, 60)  # where a rank may have several CPU seconds more to do than another one
LIMIT = 600.0  # seconds: a hang, however busy the machine is
RANKS = 3
AT_ONCE = 3
FOR_EVER = 1_000_000_000  # iterations


class LoseOne(unittest.TestCase):
    deadlines = DEADLINES

    def attempts(self, lose):
        """lose() with self.timeout and an empty self.directory, again with a longer timeout if it fails."""
        def attempt(seconds):
            self.timeout = seconds
            self.directory = pathlib.Path(tempfile.mkdtemp(prefix="multiply_lost_"))
            self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
            lose()

        with_growing_deadline(attempt, self.deadlines)

    def start(self, matrix, *arguments, command="multiply"):
        # The progress bar tells in which phase the ranks are.
        env = dict(os.environ, SHARDMAT_PROGRESS="on", OMP_NUM_THREADS="1")
        outputs = ["--output", self.directory / "y.h5", "--json", self.directory / "report.json"]
        words = [PROGRAM, command, matrix, "--timeout", self.timeout, *outputs, *arguments]
        return Ranks(words, RANKS, self.directory / "ranks", env=env)

    def wait_for_phase(self, ranks, phase):
        end = time.monotonic() + LIMIT
        while phase not in ranks.errors(0):
            self.assertLess(time.monotonic(), end, f"no {phase}\n{ranks.report()}")
            self.assertIsNone(ranks.status(0), ranks.report())
            time.sleep(0.02)

    def lose_one(self, ranks, number, victim):
        ranks.send_signal(victim, number)
        survivors = [r for r in range(RANKS) if r != victim]
        statuses = ranks.wait_for_exit(survivors, LIMIT)
        self.assertEqual(statuses, [5] * len(survivors), ranks.report())
        for rank in survivors:
            lines = [line for line in ranks.errors(rank).splitlines() if "shardmat: " in line]
            self.assertEqual(len(lines), 1, ranks.report())
            self.assertRegex(lines[0], rf"shardmat: rank {rank} (on|\().+(did not finish within {self.timeout} s|failed)", ranks.report())
            self.assertIn("--timeout", lines[0])
            self.assertEqual(ranks.output(rank), "", "a report in spite of it")
        self.assertEqual([p.name for p in self.directory.iterdir()], ["ranks"])


class WhileIterating(LoseOne):
    def lose(self, number, victim, *arguments):
        self.attempts(lambda: self.lose_iterating(number, victim, *arguments))

    def lose_iterating(self, number, victim, *arguments):
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
        self.attempts(lambda: self.lose_solving(number, victim))

    def lose_solving(self, number, victim):
        slow = ["--solver", "gmres", "--preconditioner", "none", "--restart", 2, "--rtol", 1e-300, "--max-iterations", FOR_EVER]
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
    deadlines = DEADLINES_OF_LOADING

    def lose(self, number):
        self.attempts(lambda: self.lose_loading(number))

    def lose_loading(self, number):
        with self.start("rmat:scale=20,edge_factor=32") as ranks:  # takes several CPU seconds to generate, MPI_Init much less
            end = time.monotonic() + LIMIT
            while any(cpu_seconds(ranks, r) < 0.8 for r in range(RANKS)):
                self.assertLess(time.monotonic(), end, ranks.report())
                time.sleep(0.01)
            self.lose_one(ranks, number, 1)

    def test_stopped(self):
        self.lose(signal.SIGSTOP)

    def test_killed(self):
        self.lose(signal.SIGKILL)


class AtTheStart(unittest.TestCase):
    def test_stopped(self):
        timeout = DEADLINES[0]
        start = max(30, timeout)  # of MPI
        stop = 'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then kill -STOP $$; fi; exec "$@"'
        directory = pathlib.Path(tempfile.mkdtemp(prefix="multiply_lost_"))
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        with Ranks(["sh", "-c", stop, "sh", PROGRAM, "multiply", "poisson:n=3", "--timeout", timeout], RANKS, directory) as ranks:
            self.assertEqual(ranks.wait_for_exit([0, 2], LIMIT), [5, 5], ranks.report())
            for rank in (0, 2):
                self.assertRegex(ranks.errors(rank), rf"shardmat: rank {rank}: starting MPI did not finish within {start} s")


if __name__ == "__main__":
    at_once.main(AT_ONCE)
