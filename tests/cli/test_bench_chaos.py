"""A minute of the scenario chaos of `bench service`: nothing is lost, and nothing is wrong. TEST_CHAOS_SECONDS: how long;
TEST_CHAOS_SEED: another sequence of kills, stops and requests."""

import os
import unittest

from support import CliTest

SECONDS = float(os.environ.get("TEST_CHAOS_SECONDS", 60))
SEED = int(os.environ.get("TEST_CHAOS_SEED", 1))
KINDS = ("PageRank", "batches", "bursts", "eigenvalues", "jobs that are cancelled", "jobs that are looked at", "loads", "new values", "products",
         "products amid new values", "slow clients", "solves", "the service")


class Chaos(CliTest):
    def test_nothing_is_lost_and_nothing_is_wrong(self):
        report = self.json_of("bench", "service", "--scenario", "chaos", "--seconds", SECONDS, "--seed", SEED, limit=SECONDS + 1200)
        chaos = report["scenarios"][0]
        figures = {one["what"]: one["value"] for one in chaos["figures"]}
        self.assertEqual(chaos["wrong"], 0, chaos)
        self.assertEqual(set(one["status"] for one in chaos["answers"]), {200}, chaos)
        for kind in KINDS:
            self.assertGreater(figures[f"{kind}: right"], 0, chaos)
        self.assertGreater(figures["ranks killed"] + figures["ranks stopped for ever"], 0, chaos)


if __name__ == "__main__":
    unittest.main()
