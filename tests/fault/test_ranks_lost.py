"""One of three ranks is stopped or killed: each survivor prints one line after the deadline and leaves with code 5."""

import os
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

PROGRAM = os.environ.get("SHARDMAT_COMM_FAULT", "comm_fault")
DEADLINES = (3, 15, 60)  # seconds, of the program
LIMIT = 600.0  # seconds: a hang, however busy the machine is
AT_ONCE = 1 if "GpuRanksLost" in sys.argv else 4  # tests on GPUs share these


class LoseOne(unittest.TestCase):
    def lose_one(self, *arguments, **named):
        with_growing_deadline(lambda timeout: self.lose_one_within(timeout, *arguments, **named), DEADLINES)

    def lose_one_within(self, timeout, operation, number, victim=1, count=3, says=None, env=None):
        """`says`: a pattern in which TIMEOUT stands for the deadline. `env`: variables of the ranks, further to ours."""
        directory = tempfile.mkdtemp(prefix="ranks_lost_")
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        with Ranks([PROGRAM, operation, timeout], count, directory, env=dict(os.environ, **(env or {}))) as ranks:
            try:
                ranks.wait_for_output("ready", LIMIT)
            except RuntimeError:
                if "' cannot be had" in ranks.errors(0):
                    self.skipTest(ranks.errors(0).splitlines()[0])
                raise
            time.sleep(0.3)
            ranks.send_signal(victim, number)
            survivors = [r for r in range(count) if r != victim]
            statuses = ranks.wait_for_exit(survivors, LIMIT)
            self.assertEqual(statuses, [5] * len(survivors), ranks.report())
            for rank in survivors:
                # Open MPI adds lines of its own ("Read -1, expected ...") when a process that it copies from is gone.
                lines = [line for line in ranks.errors(rank).splitlines() if "comm_fault" in line]
                self.assertEqual(len(lines), 1, ranks.report())
                pattern = says or rf"^comm_fault: rank {rank} \(.+\): .+ (did not (finish|return) within TIMEOUT s|failed)"
                self.assertRegex(lines[0], pattern.replace("TIMEOUT", str(timeout)))
                self.assertIn("raise the deadline", lines[0])


class RanksLost(LoseOne):
    def test_stopped_in_barrier(self):
        self.lose_one("barrier", signal.SIGSTOP)

    def test_killed_in_barrier(self):
        self.lose_one("barrier", signal.SIGKILL)

    def test_root_killed_in_broadcast(self):
        self.lose_one("broadcast", signal.SIGKILL, victim=0)

    def test_stopped_in_all_reduce(self):
        self.lose_one("all_reduce", signal.SIGSTOP, victim=2)

    def test_killed_in_agree(self):
        self.lose_one("agree", signal.SIGKILL, victim=0)

    def test_stopped_in_send(self):
        self.lose_one("send", signal.SIGSTOP)

    def test_stopped_in_duplicate(self):
        self.lose_one("duplicate", signal.SIGSTOP)

    def test_killed_in_duplicate(self):
        self.lose_one("duplicate", signal.SIGKILL, victim=0)

    def test_stopped_while_waited_for_long(self):
        self.lose_one("long_wait", signal.SIGSTOP)

    def test_killed_while_waited_for_long(self):
        self.lose_one("long_wait", signal.SIGKILL)

    def test_stopped_while_waited_for_at_the_end(self):
        self.lose_one("end_of_long_wait", signal.SIGSTOP)

    def test_stopped_before_ranks_join(self):
        self.lose_one("first_ranks", signal.SIGSTOP)

    def test_killed_before_ranks_join(self):
        self.lose_one("first_ranks", signal.SIGKILL)

    def test_stopped_in_all_gather(self):
        self.lose_one("host_allgather", signal.SIGSTOP)

    def test_killed_in_all_gather(self):
        self.lose_one("host_allgather", signal.SIGKILL, victim=2)

    def test_stopped_in_halo_exchange(self):
        self.lose_one("host_halo", signal.SIGSTOP)

    def test_killed_in_halo_exchange(self):
        self.lose_one("host_halo", signal.SIGKILL, victim=2)

    # Ranks 0 and 1 share a pretended host, rank 2 is alone: a rank waits for another one of its host, or for a message.
    ON_2_HOSTS = {"SHARDMAT_TEST_HOSTS_OF": "2"}

    def test_stopped_in_exchange_of_two_levels(self):
        self.lose_one("host_two_level", signal.SIGSTOP, victim=1, env=self.ON_2_HOSTS)

    def test_killed_in_exchange_of_two_levels(self):
        self.lose_one("host_two_level", signal.SIGKILL, victim=0, env=self.ON_2_HOSTS)

    def test_other_host_stopped_in_exchange_of_two_levels(self):
        self.lose_one("host_two_level", signal.SIGSTOP, victim=2, env=self.ON_2_HOSTS)

    def test_other_host_killed_in_exchange_of_two_levels(self):
        self.lose_one("host_two_level", signal.SIGKILL, victim=2, env=self.ON_2_HOSTS)

    def lose_one_of_a_group(self, operation, number, victim, says, count=3):
        # A feeder repeats what its owner says; an owner of another group waits for its deadline.
        self.lose_one(operation, number, victim, count,
                      rf"^comm_fault: rank \d \(.+\): .*({says}|did not finish within TIMEOUT s)")

    def test_killed_feeder(self):
        self.lose_one_of_a_group("feed_one", signal.SIGKILL, 1, "the work: rank 1, which hands its rows to it, has ended")

    def test_stopped_feeder(self):
        self.lose_one_of_a_group("feed_one", signal.SIGSTOP, 2, "the work: rank 2, which hands .* has been stopped for TIMEOUT")

    def test_killed_owner(self):
        self.lose_one_of_a_group("feed_one", signal.SIGKILL, 0, "the work: rank 0, which owns its rows, has ended")

    def test_stopped_owner_at_work(self):
        self.lose_one_of_a_group("feed_long_work", signal.SIGSTOP, 0, "rank 0, which owns .* has been stopped for TIMEOUT")

    def test_killed_feeder_of_an_owner_at_work(self):
        self.lose_one_of_a_group("feed_long_work", signal.SIGKILL, 2, "the work: a rank that hands its rows to it has ended")

    def test_killed_feeder_of_one_of_two_owners(self):
        self.lose_one_of_a_group("feed_two", signal.SIGKILL, 3, "rank 3, which hands its rows to it, has ended", count=4)


class GpuRanksLost(LoseOne):
    """The same on so many GPUs as SHARDMAT_FAULT_GPUS says; with SHARDMAT_TEST_HOSTS_OF=2 half as many are enough."""

    GPUS = int(os.environ.get("SHARDMAT_FAULT_GPUS", "0"))

    def setUp(self):
        if self.GPUS < 2:
            self.skipTest("needs SHARDMAT_FAULT_GPUS=2 or more")

    def test_stopped_in_all_gather(self):
        self.lose_one("cuda_allgather", signal.SIGSTOP, victim=0, count=self.GPUS)

    def test_killed_in_all_gather(self):
        self.lose_one("cuda_allgather", signal.SIGKILL, victim=0, count=self.GPUS)

    def test_stopped_in_halo_exchange(self):
        self.lose_one("cuda_halo", signal.SIGSTOP, victim=0, count=self.GPUS)

    def test_killed_in_halo_exchange(self):
        self.lose_one("cuda_halo", signal.SIGKILL, victim=0, count=self.GPUS)

    def test_stopped_in_peer_exchange(self):
        self.lose_one("cuda_peer", signal.SIGSTOP, victim=0, count=self.GPUS)

    def test_killed_in_peer_exchange(self):
        self.lose_one("cuda_peer", signal.SIGKILL, victim=0, count=self.GPUS)

    def test_stopped_in_exchange_of_two_levels(self):  # on several hosts
        self.lose_one("cuda_two_level", signal.SIGSTOP, victim=0, count=self.GPUS)

    def test_killed_in_exchange_of_two_levels(self):
        self.lose_one("cuda_two_level", signal.SIGKILL, victim=0, count=self.GPUS)


if __name__ == "__main__":
    at_once.main(AT_ONCE)
