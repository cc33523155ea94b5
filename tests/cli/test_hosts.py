"""Ranks of one machine on pretended hosts: what crosses between hosts, and the same answers however x moves."""

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

    def test_one_host_has_no_second_level(self):
        self.fail_on_every_rank(RESOURCES, "multiply", "poisson:n=5", "--backend", "host", "--exchange", "two_level", ranks=2,
                                says=["two_level", "all ranks are on one host"])


if __name__ == "__main__":
    unittest.main()
