"""Ranks of one machine on pretended hosts: what crosses between hosts, and the same answers however x moves."""

import json
import os
import unittest

import numpy as np

from support import CliTest, RESOURCES, read_vector


class Hosts(CliTest):
    def setUp(self):
        super().setUp()
        self.library = os.environ.get("TEST_PRETENDED_HOSTS")
        if not self.library:
            self.skipTest("needs TEST_PRETENDED_HOSTS, a library that is loaded first (not with sanitizers)")

    def on_hosts(self, of_each, command, matrix, *arguments, ranks=4):
        return self.json_of(command, matrix, "--backend", "host", "--no-cache", *arguments, ranks=ranks,
                            env={"LD_PRELOAD": self.library, "PRETENDED_HOSTS_OF": str(of_each)})

    @staticmethod
    def sent(report, what="bytes"):
        return round(report["exchange"][f"{what}_to_other_hosts"]["mean"] * len(report["ranks"]))

    def test_products_have_the_bits_of_halo_and_fewer_bytes_cross(self):
        # Planes of 12² points: the nearest ones cross, to each of two ranks that share a host only where both need them.
        for matrix, of_each, columns, *more in (("poisson27:n=12,nz=4", 2, 1, "--overlap"), ("poisson27:n=12,nz=4", 3, 8), ("elasticity:n=3", 2, 3),
                                                ("elasticity:n=3", 2, 1, "--type", "f32"), ("elasticity:n=3", "x2", 4, "--type", "f32", "--no-overlap")):
            with self.subTest(matrix=matrix, of_each=of_each, columns=columns, more=more):
                found = {}
                for exchange in ("halo", "two_level"):
                    report = self.on_hosts(of_each, "multiply", matrix, "--exchange", exchange, "--rhs", columns, "--kernel", "csr_host",
                                           "--iterations", 3, "--verify", "--output", f"{exchange}.npy", *more)
                    self.assertEqual(report["exchange"]["name"], exchange)
                    self.assertEqual(len({rank["host"] for rank in report["ranks"]}), 2)
                    found[exchange] = report, read_vector(self.path(f"{exchange}.npy"))
                np.testing.assert_array_equal(found["halo"][1], found["two_level"][1])
                reports = {name: report for name, (report, _) in found.items()}
                self.assertEqual(self.sent(reports["two_level"], "messages"), 2)
                self.assertLessEqual(self.sent(reports["two_level"]), self.sent(reports["halo"]))
                self.assertEqual(reports["two_level"]["exchange"]["bytes_received"], reports["halo"]["exchange"]["bytes_received"])
                if matrix == "elasticity:n=3":  # so small that every rank needs nearly all
                    self.assertLess(self.sent(reports["two_level"]), self.sent(reports["halo"]))

    def test_blocks_of_columns_count_each_block(self):
        whole, blocks = (self.on_hosts(2, "multiply", "elasticity:n=3", "--exchange", "two_level", "--rhs", 4, "--column-block", block,
                                       "--iterations", 2, "--verify") for block in (4, 2))
        self.assertEqual(self.sent(blocks), self.sent(whole))
        self.assertEqual((self.sent(whole, "messages"), self.sent(blocks, "messages")), (2, 4))

    def test_auto_measures_it_and_solve_uses_it(self):
        why = self.on_hosts(2, "multiply", "elasticity:n=4", "--iterations", 1)["exchange"]["why"]
        self.assertRegex(why, r"measured: .*halo .*two_level|only one")
        answers = {}
        for exchange in ("halo", "two_level"):
            report = self.on_hosts(2, "solve", "elasticity:n=4,clamp=0.02", "--solver", "cg", "--preconditioner", "jacobi", "--exchange",
                                   exchange, "--kernel", "csr_host", "--output", f"{exchange}.npy")
            self.assertEqual(report["exchange"]["name"], exchange)
            answers[exchange] = read_vector(self.path(f"{exchange}.npy"), "x")
        np.testing.assert_array_equal(answers["halo"], answers["two_level"])

    def test_four_ranks_on_two_hosts_are_foretold_from_one_and_two(self):
        """The formulas of performance_model.h by hand, from the constants of a study; what crosses between the hosts is what runs on
        pretended hosts send."""
        matrix = "elasticity:n=3"  # so small that all ranks but the first and last need entries of both others beyond the cut
        self.succeed("bench", "scaling", matrix, "--iterations", 5, "--backend", "host", "--no-overlap", "--json", "s.json", ranks=2)
        latency, bandwidth = 30e-6, 2e6
        network = ("--ranks-per-host", 2, "--network-latency", "30us", "--network-bandwidth", "2MB")
        (found,) = json.loads(self.succeed("predict", "s.json", "--ranks", "1,2,4", *network, "--json", "-").out)
        model, (one, two, four) = found["model"], found["ranks"]
        self.assertEqual((one["hosts"], two["hosts"], four["hosts"]), (1, 1, 2))
        self.assertEqual((two["between_hosts_max"], two["between_hosts_once_max"]), (0, 0))
        measured = {name: self.on_hosts(2, "multiply", matrix, "--exchange", name, "--no-overlap", "--iterations", 1)
                    for name in ("halo", "two_level")}
        self.assertEqual([self.sent(measured[name], "messages") for name in measured], [6, 2])
        self.assertEqual((four["messages_between_hosts_max"], four["hosts_that_send_max"]), (2, 1))
        # The matrix looks the same from both ends, so both hosts and all ranks of a place send as much.
        once, each = four["between_hosts_once_max"], four["between_hosts_max"]
        self.assertEqual(self.sent(measured["two_level"]), 2 * 8 * once)
        self.assertLess(self.sent(measured["two_level"]), self.sent(measured["halo"]))
        self.assertLessEqual(self.sent(measured["halo"]), 4 * 8 * each)
        (inside,) = [cost for cost in model["exchanges"] if (cost["name"], cost["ranks"]) == ("halo", 2)]

        def within(entries):
            few = min(8 * entries, inside["few_bytes"])
            return few * inside["s_per_byte_of_few"] + (8 * entries - few) * inside["s_per_byte"]

        all_entries = max(four["halo_max"], four["sent_max"])
        by_hand = {"halo": inside["latency_s"] + 2 * latency + max(within(all_entries - each), 8 * each / bandwidth),
                   "allgather": 3 * latency + 8 * 3 * measured["halo"]["partition"]["rows"]["max"] / bandwidth,
                   "two_level": 2 * inside["latency_s"] + latency + max(within(all_entries - each), 8 * once / 2 / bandwidth) + within(each)}
        fastest = min(by_hand, key=by_hand.get)
        self.assertEqual(four["exchange"], fastest, by_hand)
        self.assertAlmostEqual(four["exchange_s"], by_hand[fastest], delta=1e-12)
        points = model["product"]  # lines between them; below the first the line goes on, but no nonzero takes less than there
        nnz = four["nnz_max"]
        product = np.interp(nnz, [p["nnz"] for p in points], np.minimum.accumulate([p["seconds"] for p in points][::-1])[::-1])
        self.assertGreaterEqual(nnz, points[0]["nnz"])
        self.assertAlmostEqual(four["product_s"], product, delta=1e-12)
        self.assertAlmostEqual(four["iteration_s"], four["product_s"] + four["exchange_s"] + four["unsteady_s"], delta=1e-12)

    def test_one_host_has_no_second_level(self):
        self.fail_on_every_rank(RESOURCES, "multiply", "poisson:n=5", "--backend", "host", "--exchange", "two_level", ranks=2,
                                says=["two_level", "all ranks are on one host"])


if __name__ == "__main__":
    unittest.main()
