"""predict: what the model says of many ranks, from a scaling study, and what it refuses."""

import json
import re
import unittest

import numpy as np

from support import INPUT, PROGRAM, USAGE, CliTest, DATA, fem_matrix, run


class Predict(CliTest):
    def study(self, *matrices, ranks=2, more=()):
        self.succeed("bench", "scaling", *matrices, "--iterations", 3, "--backend", "host", "--json", "s.json", *more, ranks=ranks)
        return json.loads(self.path("s.json").read_text())

    def predict(self, *options):
        found = json.loads(self.succeed("predict", "s.json", *options, "--json", "-").out)
        for one in found:
            one.pop("run")  # date and command line
        return found

    def test_measured_points_stand_beside_the_predicted(self):
        self.succeed("partition", DATA / "stokes.mtx.gz", "stokes.h5")
        study = self.study("stokes.h5", "--exchange", "auto")
        (found,) = self.predict("--ranks", "1,2")
        one, two = found["ranks"]
        seconds = [case["report"]["iteration"]["median_s"] for case in study["cases"]]
        self.assertEqual([one["measured_s"], two["measured_s"]], seconds)
        self.assertEqual([case["forecast"]["iteration_s"] for case in study["cases"]], [one["iteration_s"], two["iteration_s"]])
        self.assertAlmostEqual(one["iteration_s"], seconds[0], delta=1e-9)
        self.assertEqual((one["exchange"], one["exchange_s"]), ("none", 0))
        text = self.succeed("predict", "s.json", "--ranks", "1,2").out
        for word in ("off by", "+0.0 %", "imbalance", "halo"):
            self.assertIn(word, text)

    def test_a_study_from_another_folder_and_its_doubts(self):
        self.path("there").mkdir()
        self.path("elsewhere").mkdir()
        self.succeed("partition", DATA / "stokes.mtx.gz", "there/stokes.h5")
        result = run(["mpirun", "-n", 2, PROGRAM, "bench", "scaling", "stokes.h5", "--iterations", 3, "--backend", "host", "--json",
                      "s.json"], self.path("there"))
        self.assertEqual(result.code, 0, result)
        study = json.loads(self.path("there/s.json").read_text())
        for case in study["cases"]:
            case["notes"] = []  # a loaded machine leaves some
        study["cases"][1]["notes"] = ["137.0 % of perfect scaling: the baseline on 1 rank was disturbed"]
        self.path("elsewhere/s.json").write_text(json.dumps(study))
        text = self.succeed("predict", "elsewhere/s.json", "--ranks", "1,2").out
        self.assertIn("doubtful, for the study says of 2 ranks", text)
        self.assertIn("137.0 %", text)
        (found,) = json.loads(self.succeed("predict", "elsewhere/s.json", "--ranks", "1,2", "--json", "-").out)
        self.assertEqual(len(found["doubts"]), 1)
        self.path("there").rename(self.path("moved"))
        self.succeed("predict", "moved/s.json", "--ranks", "1,2")  # beside the study
        self.fail_with(INPUT, "predict", "elsewhere/s.json", says=["stokes.h5", "--matrix"])

    def test_needs_are_those_that_scipy_counts(self):
        self.succeed("partition", DATA / "stokes.mtx.gz", "stokes.h5", "--parts", 5)
        (stored,) = json.loads(self.succeed("info", "stokes.h5", "--json").out)["partitions"]
        self.study("stokes.h5")
        (found,) = self.predict("--ranks", 5, "--network-latency", "2us", "--network-bandwidth", "10GB")
        (five,) = found["ranks"]
        matrix, starts = fem_matrix("stokes"), stored["row_starts"]
        halos, neighbours, boundary, sent = [], [], [], np.zeros(5, dtype=int)
        for begin, end in zip(starts, starts[1:]):
            part = matrix[begin:end]
            foreign = (part.indices < begin) | (part.indices >= end)
            columns = np.unique(part.indices[foreign])
            halos.append(columns.size)
            owners = np.searchsorted(starts, columns, side="right") - 1
            sent += np.bincount(owners, minlength=5)
            neighbours.append(np.unique(owners).size)
            rows = np.unique(np.repeat(np.arange(end - begin), np.diff(part.indptr))[foreign])
            boundary.append(int(np.diff(part.indptr)[rows].sum()))
        self.assertEqual((five["halo_max"], five["sent_max"], five["neighbours_max"], five["boundary_nnz_max"]),
                         (max(halos), max(sent), max(neighbours), max(boundary)))
        by_hand = min(max(neighbours) * 2e-6 + 8 * max(*halos, *sent) / 10e9, 4 * 2e-6 + 8 * 4 * max(np.diff(starts)) / 10e9)
        self.assertAlmostEqual(five["exchange_s"], by_hand, delta=1e-12)

    def test_another_matrix_at_the_speed_of_the_first(self):
        self.study("poisson27:n=8")
        (found,) = self.predict("--matrix", "poisson27:n=12", "--ranks", 1)
        self.assertEqual(found["matrix"], "poisson27:n=12")
        self.assertNotIn("measured_s", found["ranks"][0])
        self.assertEqual(found["ranks"][0]["nnz_max"], 34 ** 3)

    def test_networks_have_a_bandwidth_a_second(self):
        self.study("poisson27:n=5")
        plain, a_second = (self.predict("--ranks", 4, "--network-latency", "2us", "--network-bandwidth", bandwidth)
                           for bandwidth in ("25GB", "25GB/s"))
        self.assertEqual(plain, a_second)

    def test_a_matrix_without_entries(self):
        self.study("poisson27:n=5")
        self.write("empty.mtx", "%%MatrixMarket matrix coordinate real general\n4 4 0\n")
        self.succeed("partition", "empty.mtx", "empty.h5")
        self.assertNotIn("nan", self.succeed("predict", "s.json", "--matrix", "empty.h5").out)

    def test_without_overlap_times_add_up(self):
        study = self.study("poisson27:n=10", more=("--no-overlap",))
        two = study["cases"][1]["forecast"]
        self.assertAlmostEqual(two["iteration_s"], two["product_s"] + two["exchange_s"] + two["unsteady_s"], delta=1e-12)
        self.assertFalse(self.predict("--ranks", 2)[0]["model"]["overlaps"])

    def test_links_are_those_between_as_many_ranks(self):
        (model,) = self.study("poisson27:n=12", ranks=3, more=("--no-overlap", "--ranks", "1,2,3"))["models"]
        self.assertEqual(sorted({(cost["ranks"], cost["name"]) for cost in model["exchanges"]}),
                         [(ranks, name) for ranks in (2, 3) for name in ("allgather", "halo")])
        study = json.loads(self.path("s.json").read_text())
        for cost in study["models"][0]["exchanges"]:
            cost |= {"latency_s": cost["ranks"], "s_per_byte": 0, "s_per_byte_of_few": 0}
        self.path("s.json").write_text(json.dumps(study))
        self.assertEqual([r["exchange_s"] for r in self.predict("--ranks", "2,3")[0]["ranks"]], [2, 3])

    def test_hosts_of_two_ranks(self):
        """Entries between hosts as SciPy counts them, and times by the formula of performance_model.h."""
        self.succeed("partition", DATA / "stokes.mtx.gz", "stokes.h5", "--parts", 6)
        (stored,) = json.loads(self.succeed("info", "stokes.h5", "--json").out)["partitions"]
        study = self.study("stokes.h5", more=("--no-overlap",))
        for cost in study["models"][0]["exchanges"]:
            cost |= {"latency_s": 5e-6, "s_per_byte": 1e-10, "few_bytes": 0} if cost["name"] == "halo" else {"latency_s": 1}
        study["models"][0]["unsteadiness"] = [1, 1, 1, 1.5]
        self.path("s.json").write_text(json.dumps(study))
        network = ("--ranks-per-host", 2, "--network-latency", "20us", "--network-bandwidth", "1MB")
        (found,) = self.predict("--ranks", "2,6", *network)
        two, six = found["ranks"]
        self.assertEqual([r["hosts"] for r in (two, six)], [1, 3])
        self.assertEqual((two["between_hosts_max"], two["exchange"], two["extrapolated"]), (0, "halo", False))
        matrix, starts = fem_matrix("stokes"), stored["row_starts"]
        received, messages, sent, halos, all_sent = [], [], np.zeros(6, dtype=int), [], np.zeros(6, dtype=int)
        for part, (begin, end) in enumerate(zip(starts, starts[1:])):
            columns = np.unique(matrix[begin:end].indices)
            owners = np.searchsorted(starts, columns, side="right") - 1
            foreign, between = owners != part, owners // 2 != part // 2
            halos.append(int(foreign.sum()))
            received.append(int(between.sum()))
            messages.append(np.unique(owners[between]).size)
            sent += np.bincount(owners[between], minlength=6)
            all_sent += np.bincount(owners[foreign], minlength=6)
        most, each = max(*received, *sent), max(*halos, *all_sent)
        self.assertEqual((six["between_hosts_max"], six["messages_between_hosts_max"]), (most, max(messages)))
        by_hand = 5e-6 + max(messages) * 20e-6 + max(8 * (each - most) * 1e-10, 8 * most / 1e6)
        ring = 5 * 20e-6 + 8 * 5 * max(np.diff(starts)) / 1e6
        # An entry crosses once for each host: two ranks share what their host receives, and both then get what they need.
        cuts, arrive, senders, leave = starts[::2], [], [], np.zeros(3, dtype=int)
        for host, (begin, end) in enumerate(zip(cuts, cuts[1:])):
            columns = np.unique(matrix[begin:end].indices)
            owners = np.searchsorted(cuts, columns, side="right") - 1
            arrive.append(int((owners != host).sum()))
            senders.append(np.unique(owners[owners != host]).size)
            leave += np.bincount(owners[owners != host], minlength=3)
        once = max(*arrive, *leave)
        self.assertEqual((six["between_hosts_once_max"], six["hosts_that_send_max"]), (once, max(senders)))
        self.assertLess(once, 2 * most)
        two_levels = 2 * 5e-6 + max(senders) * 20e-6 + max(8 * (each - most) * 1e-10, 8 * once / 2 / 1e6) + 8 * most * 1e-10
        self.assertAlmostEqual(six["exchange_s"], min(by_hand, ring, two_levels), delta=1e-12)
        self.assertEqual(six["exchange"], "two_level")
        self.assertAlmostEqual(six["unsteady_s"], 0.5 * six["product_s"], delta=1e-12)  # 2^(-1/6) = 0.89
        self.assertEqual(two["unsteady_s"], 0)  # 2^(-1/2) = 0.71
        text = self.succeed("predict", "s.json", *network).out
        rows = {line.split()[0]: line for line in text.splitlines() if re.match(r" +\d+ +\d+ ", line)}
        self.assertEqual(list(rows), [str(2**i) for i in range(13)])
        self.assertEqual([ranks for ranks, line in rows.items() if "extrapolated" in line], [str(2**i) for i in range(4, 13)])

    def test_measured_on_as_many_hosts_as_predicted(self):
        study = self.study("poisson27:n=8")
        network = ("--network-latency", "20us", "--network-bandwidth", "1GB")
        for hosts in (("a", "a"), ("a", "b")):
            for case in study["cases"]:
                for rank, host in zip(case["report"]["ranks"], hosts):
                    rank["host"] = host
            self.path("s.json").write_text(json.dumps(study))
            for ranks_per_host, predicted in ((2, 1), (1, 2)):
                (found,) = self.predict("--ranks", "1,2", "--ranks-per-host", ranks_per_host, *network)
                self.assertEqual(["measured_s" in row for row in found["ranks"]], [True, len(set(hosts)) == predicted], (hosts, ranks_per_host))
                text = self.succeed("predict", "s.json", "--ranks", "1,2", "--ranks-per-host", ranks_per_host, *network).out
                self.assertEqual(len(re.findall(r"[+-]\d+\.\d %", text)), 1 + (len(set(hosts)) == predicted), text)
            (found,) = self.predict("--ranks", "1,2")  # says nothing of hosts
            self.assertTrue(all("measured_s" in row for row in found["ranks"]))

    def test_a_host_with_more_ranks_than_the_study(self):
        self.study("poisson27:n=8")
        (found,) = self.predict("--ranks-per-host", 4)
        self.assertEqual([r["ranks"] for r in found["ranks"]], [1, 2, 4])
        self.fail_with(USAGE, "predict", "s.json", "--ranks-per-host", 4, "--ranks", 8, says=["8 ranks are on 2 hosts", "latency"])
        self.fail_with(USAGE, "predict", "s.json", "--ranks", 4, says="--ranks-per-host")

    def test_several_right_hand_sides(self):
        study = self.study("poisson27:n=6", more=("--rhs", 8))
        self.assertEqual(study["models"][0]["entry_bytes"], 64)
        self.assertGreater(study["cases"][1]["forecast"]["iteration_s"], 0)

    def test_figures_out_of_range_are_refused_by_their_field(self):
        good = self.study("poisson27:n=6", ranks=2)
        for field, value in (("split_latency_s", 1e30), ("split_latency_s", -1), ("split_latency_s", "x"), ("entry_bytes", 0),
                             ("entry_bytes", 2**63), ("measured_ranks", 1e300)):
            edited = json.loads(json.dumps(good))
            edited["models"][0][field] = value
            self.write("edited.json", json.dumps(edited))
            self.fail_with(INPUT, "predict", "edited.json", says=["edited.json", f"the field {field} is"])
        for where, field in ((lambda s: s["models"][0]["product"][0], "seconds"), (lambda s: s["models"][0]["product"][0], "nnz"),
                             (lambda s: s["models"][0]["exchanges"][0], "latency_s"),
                             (lambda s: s["models"][0]["exchanges"][0], "s_per_byte"),
                             (lambda s: s["cases"][0]["report"]["iteration"], "median_s")):
            edited = json.loads(json.dumps(good))
            where(edited)[field] = 1e30
            self.write("edited.json", json.dumps(edited))
            self.fail_with(INPUT, "predict", "edited.json", says=["edited.json", f"the field {field} is 1e+30"])

    def test_deep_and_long_json_is_refused_shortly(self):
        self.write("deep.json", "[" * 100000)
        self.fail_with(INPUT, "predict", "deep.json", says=["deep.json", "nested more than 64 deep"])
        self.write("deep.json", '{"models": [{"matrix": "' + "x" * 100000 + '"}]}')
        self.assertLess(len(self.fail_with(INPUT, "predict", "deep.json", says="the field matrix is longer").err), 600)

    def test_what_it_cannot_know_is_said(self):
        self.study("poisson27:n=5", "poisson27:n=5,nz={4}")
        self.assertEqual(len(self.predict("--ranks", 2)), 1)  # the other matrix is another on each number of ranks
        self.fail_with(USAGE, "predict", "s.json", "--ranks", 3, says=["only between 2", "latency"])
        self.assertEqual([r["ranks"] for r in self.predict()[0]["ranks"]], [1, 2])  # as many as were measured
        self.fail_with(USAGE, "predict", "s.json", "--network-bandwidth", "25GB", says="--network-latency")
        self.fail_with(USAGE, "predict", "s.json", "--network-latency", "5us", says="--network-bandwidth")
        for latency in ("-5us", "5", "5 years", "us", "nanus"):
            self.fail_with(USAGE, "predict", "s.json", f"--network-latency={latency}", "--network-bandwidth", "25GB",
                           says=["--network-latency", "s, ms, us or ns"])
        self.fail_with(USAGE, "predict", "s.json", "--network-latency", "5us", "--network-bandwidth", "25", says="B, kB, MB, GB or TB")
        self.fail_with(USAGE, "predict", "s.json", "--network-latency", "5us", "--network-bandwidth", "0GB", says="--network-bandwidth")
        self.fail_with(USAGE, "predict", "s.json", "--network-latency", "5us", "--network-bandwidth", "25", says="unit")
        self.fail_with(USAGE, "predict", "s.json", "--ranks", 0, says="--ranks")
        self.fail_with(INPUT, "predict", ".", says=".: it is a directory")
        self.fail_with(INPUT, "predict", "none.json", says=["none.json", "bench scaling --json"])
        self.write("other.json", "[1, 2")
        self.fail_with(INPUT, "predict", "other.json", says=["other.json: it is no JSON", "bench scaling --json"])
        self.write("other.json", "[1, 2]")
        self.fail_with(INPUT, "predict", "other.json", says=["other.json is not what", "run it again"])
        self.study("poisson27:n=5", more=("--ranks", 2))
        self.fail_with(INPUT, "predict", "s.json", says="one rank among --ranks")


if __name__ == "__main__":
    unittest.main()
