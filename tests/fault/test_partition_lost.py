"""`shardmat partition` on three ranks loses one: each survivor says so once and leaves with code 5, and no file is left."""

import os
import signal
import time

import at_once
from ranks import Ranks
from test_multiply_lost import DEADLINES_OF_LOADING, LIMIT, PROGRAM, RANKS, LoseOne, cpu_seconds


class PartitionLost(LoseOne):
    deadlines = DEADLINES_OF_LOADING

    def start(self, matrix, *arguments):
        env = dict(os.environ, OMP_NUM_THREADS="1")
        return Ranks([PROGRAM, "partition", matrix, self.directory / "o.h5", "--reorder", "graph", "--timeout", self.timeout, *arguments],
                     RANKS, self.directory / "ranks", env=env)

    def wait(self, ranks, what, condition):
        end = time.monotonic() + LIMIT
        while not condition():
            self.assertLess(time.monotonic(), end, f"no {what}\n{ranks.report()}")
            if "no PT-Scotch" in ranks.errors(0):
                self.skipTest("built without PT-Scotch")
            self.assertIsNone(ranks.status(0), ranks.report())
            time.sleep(0.005)

    def lose(self, how, number, victim):
        self.attempts(lambda: how(number, victim))

    def lose_partitioning(self, number, victim):
        with self.start("poisson:n=56", "--parts", "4096") as ranks:  # CPU time of a rank: 0.4 s to read, 2.5 s to partition
            self.wait(ranks, "graph", lambda: all(cpu_seconds(ranks, r) > 1.2 for r in range(RANKS)))
            self.lose_one(ranks, number, victim)

    def lose_writing(self, number, victim):
        with self.start("poisson:n=80", "--parts", "1") as ranks:  # one part needs no partitioning
            self.wait(ranks, "file", lambda: any(self.directory.glob("*o.h5*")))
            self.lose_one(ranks, number, victim)

    def test_stopped_while_partitioning(self):
        self.lose(self.lose_partitioning, signal.SIGSTOP, 1)

    def test_killed_while_partitioning(self):
        self.lose(self.lose_partitioning, signal.SIGKILL, 2)

    def test_stopped_while_writing(self):
        self.lose(self.lose_writing, signal.SIGSTOP, 2)

    def test_killed_while_writing(self):
        self.lose(self.lose_writing, signal.SIGKILL, 1)


if __name__ == "__main__":
    at_once.main(4)
