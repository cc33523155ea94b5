"""One of three ranks is stopped at an MPI call or at a moment after MPI has started, wherever its command then is: the other
ranks say so once after the deadline and leave with code 5. The calls are spread over the command; FAULT_TRIES=N tries N calls
and N moments of each command in place of a handful."""

import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import at_once  # noqa: E402
from growing_deadline import with_growing_deadline  # noqa: E402
from ranks import Ranks  # noqa: E402

PROGRAM = os.environ.get("TEST_PROGRAM", "shardmat")
STOP_AT_CALL = os.environ.get("STOP_AT_CALL_LIBRARY", "libstop_at_call.so")
TRIES = int(os.environ.get("FAULT_TRIES", "0"))
AT_ONCE = 2  # tests at a time, and tries of each: most of their time is waiting
RANKS, VICTIM = 3, 1
LIMIT = 600.0  # seconds: a hang, however busy the machine is
POLLS = 0.5  # share of the calls that a command which polls with some of them makes in every run


class StoppedAnywhere(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="stopped_anywhere_"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def environment(self, **more):
        return dict(os.environ, OMP_NUM_THREADS="1", SHARDMAT_CACHE_DIR=str(self.directory / "cache"), STOP_RANK=str(VICTIM),
                    **more)

    def shardmat(self, *arguments, ranks=1):
        """What it said on stderr. The directory stays without its outputs if several ranks run."""
        where = self.directory / "alone" if ranks > 1 else self.directory
        where.mkdir(exist_ok=True)
        launcher = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), "env", f"LD_PRELOAD={STOP_AT_CALL}"] if ranks > 1 else []
        done = subprocess.run([*launcher, PROGRAM, *map(str, arguments)], env=self.environment(), cwd=where,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT)
        if "no PT-Scotch" in done.stderr:
            self.skipTest("built without PT-Scotch")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def lose_one(self, number, command, output, stop):
        """True if the rank was stopped before it was through; then the others must have left with code 5."""
        return with_growing_deadline(lambda timeout: self.lose_one_within(timeout, number, command, output, stop))

    def lose_one_within(self, timeout, number, command, output, stop):
        where = self.directory / f"try{number}-{timeout}"
        where.mkdir()
        with Ranks(["env", f"LD_PRELOAD={STOP_AT_CALL}", PROGRAM, *command, "--timeout", timeout], RANKS, where / "ranks",
                   env=self.environment(**stop), cwd=where) as ranks:
            end = time.monotonic() + LIMIT
            while "stopped at call" not in ranks.errors(VICTIM):
                if ranks.status(VICTIM) is not None:
                    self.assertEqual(ranks.status(VICTIM), 0, ranks.report())
                    return False
                self.assertLess(time.monotonic(), end, ranks.report())
                time.sleep(0.01)
            others = [r for r in range(RANKS) if r != VICTIM]
            statuses = ranks.wait_for_exit(others, LIMIT)
            if "STOP_AFTER_MS" in stop and 0 in statuses:  # a moment can be after the end of all work
                self.assertLessEqual(set(statuses), {0, 5}, f"{stop}\n{ranks.report()}")
                return False
            self.assertEqual(statuses, [5] * len(others), f"{stop}\n{ranks.report()}")
            for rank in others:
                lines = [line for line in ranks.errors(rank).splitlines() if "shardmat: " in line]
                self.assertEqual(len(lines), 1, f"{stop}\n{ranks.report()}")
                self.assertRegex(lines[0], rf"shardmat: rank {rank} (on|\().+(did not (finish|return) within {timeout} s|failed)",
                                 f"{stop}\n{ranks.report()}")
        self.assertLessEqual({p.name for p in where.iterdir()}, {"ranks", output}, stop)
        return True

    def lose_often(self, command, calls, moments=0, output=None, share=1.0):
        """`calls` and `moments`: how many are tried without FAULT_TRIES; the calls are spread over the first `share` of all."""
        began = time.monotonic()
        total = int(re.search(r"MPI calls: (\d+)", self.shardmat(*command, ranks=RANKS)).group(1))
        took = time.monotonic() - began
        calls, moments = (TRIES or calls), (TRIES or moments)
        stops = [{"STOP_AT_CALL": str(1 + round((share * total - 1) * i / (calls - 1)))} for i in range(calls)]
        stops += [{"STOP_AFTER_MS": str(random.randrange(max(1, int(600 * took))))} for _ in range(moments)]
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            stopped = list(pool.map(lambda n: self.lose_one(n, command, output, stops[n]), range(len(stops))))
        self.assertTrue(all(stopped[:calls]) if share == 1 else any(stopped[:calls]), list(zip(stops, stopped)))

    def test_multiply(self):
        matrix = self.directory / "m.h5"
        self.shardmat("generate", "poisson", "--n", 12, matrix, "--parts", 3)
        self.lose_often(["multiply", matrix, "--iterations", "0", "--verify", "--output", "y.h5"], 4, 1, "y.h5")

    def test_multiply_a_text_file(self):
        matrix = self.directory / "m.mtx"
        self.shardmat("convert", "poisson:n=12", matrix)
        self.lose_often(["multiply", matrix, "--iterations", "0"], 3, 1, share=POLLS)

    def test_partition(self):
        self.lose_often(["partition", "poisson:n=12", "o.h5", "--reorder", "graph", "--parts", "6"], 3, 1, "o.h5", POLLS)

    def test_batch(self):
        batch = self.directory / "b.h5"
        self.shardmat("batch", "molecules:count=64,seed=1", "--iterations", 0, "--save", batch)
        self.lose_often(["batch", batch, "--rhs", "8", "--iterations", "0", "--verify", "--output", "y.h5"], 4, 1, "y.h5")

    def test_scaling_study(self):
        self.lose_often(["bench", "scaling", "poisson:n=8", "--iterations", "2", "--ranks", "2,3", "--no-cache"], 2, share=POLLS)


if __name__ == "__main__":
    at_once.main(AT_ONCE)
