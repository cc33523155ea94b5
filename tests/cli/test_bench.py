"""bench kernels, bench spmm and bench papers: tables and JSON are there and agree, mistakes are refused, exit codes."""

import json
import shutil
import subprocess
import unittest

from support import DATA, INPUT, USAGE, CliTest

QUICK = ("--backend", "host", "--warm", "--repetitions", 3)
CLASSES = ["elasticity", "poisson27", "poisson7", "rmat", "random", "5 diagonals", "7 diagonals", "dense band",
           "sparse band"]


def has_matplotlib():
    attempts = [[python, "-c", "import matplotlib"] for python in ("python3", "/usr/bin/python3") if shutil.which(python)]
    return any(subprocess.run(attempt, capture_output=True).returncode == 0 for attempt in attempts)


class Spmm(CliTest):
    def test_every_class_type_and_order(self):
        report = self.json_of("bench", "spmm", "--size", "tiny", "--rhs", "1,4", "--order", "row,column", *QUICK)
        self.assertEqual([(c["matrix"]["name"], c["type"], c["order"], c["rhs"]) for c in report["cases"]],
                         [(name, type, order, rhs) for name in ("poisson27", "elasticity", "rmat", "random")
                          for type in ("f32", "f64") for order in ("row", "column") for rhs in (1, 4)])
        for case in report["cases"]:
            self.assertEqual(case["auto"]["wrong_entries"], 0)
            self.assertGreater(case["auto"]["median_s"], 0)
            self.assertGreater(case["least_s"], 0)
            self.assertGreater(case["spmv_s"], 0)

    def test_table_names_the_kernel(self):
        text = self.succeed("bench", "spmm", DATA / "stokes.mtx.gz", "--rhs", 3, "--type", "f64", "--kernel", "all", *QUICK).out
        for word in ("stokes.mtx.gz", "csr_host", "GFLOP/s", "row-major"):
            self.assertIn(word, text)

    def test_mistakes(self):
        self.fail_with(USAGE, "bench", "spmm", "poisson7:n=4", "--kernel", "csr_hots", *QUICK, says="did you mean 'csr_host'")
        self.fail_with(USAGE, "bench", "spmm", "poisson7:n=4", "--rhs", 0, *QUICK, says="--rhs")

    @unittest.skipUnless(has_matplotlib(), "matplotlib is missing")
    def test_plot(self):
        self.succeed("bench", "spmm", "poisson7:n=4", "--rhs", "2,4", "--plot", "spmm.svg", *QUICK)
        self.assertIn("right-hand sides", (self.path("spmm.svg")).read_text())


class Kernels(CliTest):
    def test_every_class_in_both_types(self):
        report = self.json_of("bench", "kernels", "--size", "tiny", *QUICK)
        self.assertEqual([(case["matrix"]["name"], case["type"]) for case in report["cases"]],
                         [(name, type) for name in CLASSES for type in ("f32", "f64")])
        self.assertEqual(report["machine"]["backend"], "host")
        self.assertGreater(report["machine"]["copy_bandwidth_bytes_per_s"], 0)
        self.assertEqual(report["yardstick"], "best CSR kernel")
        for case in report["cases"]:
            measured = {r["kernel"]: r for r in case["results"] if "refused" not in r}
            self.assertIn("csr_host", measured)
            for r in measured.values():
                self.assertEqual(r["wrong_rows"], 0)
                self.assertGreater(r["median_s"], 0)
                self.assertLessEqual(r["min_s"], r["median_s"])
                self.assertLessEqual(r["median_s"], r["max_s"])
                self.assertAlmostEqual(r["ratio"], case["yardstick"]["median_s"] / r["median_s"])
            best = min(r["median_s"] for r in measured.values())
            self.assertEqual(case["best_own"]["median_s"], best)
            self.assertGreater(case["auto"]["ratio"], 0)
        ratios = [case["best_own"]["ratio"] for case in report["cases"]]
        self.assertGreaterEqual(min(ratios), 1)
        self.assertGreaterEqual(report["geometric_mean_ratio"]["best_own"], min(ratios))
        self.assertLessEqual(report["geometric_mean_ratio"]["best_own"], max(ratios))

    def test_bytes_are_those_of_the_format(self):
        case = self.json_of("bench", "kernels", "random:n=1000,cols=3000,row_nnz=4", "--type", "f32", *QUICK)["cases"][0]
        csr = next(r for r in case["results"] if r["kernel"] == "csr_host")
        self.assertEqual(csr["format_bytes"], 4 * 1001 + 8 * 4000)
        self.assertEqual(csr["moved_bytes"], csr["format_bytes"] + 4 * (case["matrix"]["x_entries"] + 1000))
        self.assertLess(case["matrix"]["x_entries"], 3000)

    def test_table_and_summary(self):
        text = self.succeed("bench", "kernels", DATA / "stokes.mtx.gz", "--type", "f64", *QUICK).out
        for word in ("copy bandwidth", "Medians of 3 products, caches left warm", "checked row by row",
                     "stokes.mtx.gz: 783 × 783", "B/nnz", "csr_host", "Summary; ratios over the best CSR kernel",
                     "geometric mean of 1: best own", "auto"):
            self.assertIn(word, text)

    def test_named_kernels_and_the_yardstick_alone(self):
        report = self.json_of("bench", "kernels", "poisson7:n=5", "--kernel", "csr_host", "--type", "f64", *QUICK)
        self.assertIn("csr_host", [r["kernel"] for r in report["cases"][0]["results"]])
        self.assertEqual({r["format"] for r in report["cases"][0]["results"]}, {"csr"})
        self.assertIsNone(report["cases"][0]["auto"])
        self.assertEqual(len(report["notes"]), 1)

    def test_shard_files_and_options_before_matrices(self):
        self.succeed("generate", "diagonals", "--n", 50, "--spacing", 7, "a.h5")
        report = self.json_of("bench", "kernels", *QUICK, "--type", "f64", "--kernel", "csr_host", "a.h5", "poisson7:n=3")
        self.assertEqual([case["matrix"]["rows"] for case in report["cases"]], [50, 27])

    def test_empty_matrix(self):
        case = self.json_of("bench", "kernels", "random:n=0,row_nnz=0", "--type", "f64", *QUICK)["cases"][0]
        self.assertEqual(case["matrix"]["nnz"], 0)

    def test_budget_lists_what_it_leaves_out(self):
        options = ("--budget", "1e-9", "--type", "f64", "--no-verify")
        out = self.succeed("bench", "kernels", "poisson7:n=5", *options, *QUICK).out
        self.assertRegex(out, r"not measured: csr_host.*: the budget of .* is used up")
        self.assertIn("every result unchecked", out)

    def test_peer_sweep_says_what_is_missing(self):
        out = self.succeed("bench", "kernels", "poisson7:n=5", "--peer-sweep", "--kernel", "csr_host", *QUICK).out
        self.assertIn("no kernel sell_cusparse on the host backend", out)

    def test_caches_are_flushed_unless_warm(self):
        out = self.succeed("bench", "kernels", "poisson7:n=5", "--backend", "host", "--repetitions", 1, "--type", "f64").out
        self.assertIn("caches flushed between them", out)

    def test_json_file_and_picture(self):
        if not has_matplotlib():
            self.skipTest("no matplotlib")
        self.succeed("bench", "kernels", "poisson7:n=5", "rmat:scale=5", "--json", "r.json", "--plot", "r.svg", *QUICK)
        self.assertEqual(len(json.loads(self.path("r.json").read_text())["cases"]), 4)
        self.assertIn("<svg", self.path("r.svg").read_text())
        self.assertEqual(self.files(), ["r.json", "r.svg"])

    def test_mistakes(self):
        self.fail_with(USAGE, "bench", "kernels", "poisson7:n=5", "--kernel", "csr_hots", *QUICK,
                       says=["csr_hots", "did you mean 'csr_host'?"])
        self.fail_with(USAGE, "bench", "kernels", "--size", "huge", says=["huge", "tiny"])
        self.fail_with(USAGE, "bench", "kernels", "--type", "f16", says=["f16", "f32"])
        self.fail_with(USAGE, "bench", "kernels", "--repetitions", 0, says=["--repetitions", "whole number from 1"])
        self.fail_with(USAGE, "bench", "kernels", "--budget", -1, says=["--budget", "greater than 0"])
        self.fail_with(USAGE, "bench", "kernles", says="did you mean kernels?")
        self.fail_with(USAGE, "bench", "kernels", "poison7:n=5", *QUICK, says="did you mean poisson7?")
        self.fail_with(INPUT, "bench", "kernels", "none.mtx", *QUICK, says=["none.mtx", "no such file"])
        self.fail_with(INPUT, "bench", "kernels", "--json", "none/r.json", says=["none", "create it first"])
        self.fail_on_every_rank(USAGE, "bench", "kernels", ranks=2, says=["bench kernels", "without mpirun"])


class Scaling(CliTest):
    def test_some_of_the_ranks_with_each_exchange(self):
        self.succeed("partition", DATA / "stokes.mtx.gz", "stokes.h5")
        report = self.json_of("bench", "scaling", "poisson27:n=7", "stokes.h5", "--ranks", "1,3", "--exchange",
                              "halo,allgather", "--rhs", 2, "--iterations", 3, "--backend", "host", ranks=3)
        self.assertEqual([(c["matrix"].split("/")[-1], c["ranks"], c["exchange_asked"]) for c in report["cases"]],
                         [(matrix, ranks, exchange) for matrix in ("poisson27:n=7", "stokes.h5")
                          for ranks, exchange in ((1, "auto"), (3, "halo"), (3, "allgather"))])
        for case in report["cases"]:
            self.assertEqual(len(case["report"]["ranks"]), case["ranks"])
            self.assertEqual(case["report"]["exchange"]["name"], "none" if case["ranks"] == 1 else case["exchange_asked"])
            self.assertEqual(case["report"]["operation"]["right_hand_sides"], 2)
            self.assertTrue(case["report"]["verification"]["passed"])
            self.assertGreater(case["efficiency"], 0)
        self.assertEqual([c["efficiency"] for c in report["cases"] if c["ranks"] == 1], [1, 1])

    def test_weak(self):
        report = self.json_of("bench", "scaling", "poisson27:n=5,nz={4}", "--iterations", 2, "--backend", "host", ranks=2)
        self.assertEqual([(c["weak"], c["ranks"], c["report"]["matrix"]["rows"]) for c in report["cases"]],
                         [(True, 1, 100), (True, 2, 200)])

    def test_text(self):
        out = self.succeed("bench", "scaling", "poisson27:n=5", "--backend", "host", "--iterations", 2, ranks=2).out
        for word in ("125 rows", "not hidden", "100.0 %", "none", "halo"):
            self.assertIn(word, out)

    @unittest.skipUnless(has_matplotlib(), "matplotlib is missing")
    def test_picture(self):
        self.succeed("bench", "scaling", "poisson27:n=5", "--backend", "host", "--iterations", 2, "--plot", "s.svg", ranks=2)
        self.assertIn("<svg", self.path("s.svg").read_text())

    def test_mistakes(self):
        self.fail_on_every_rank(USAGE, "bench", "scaling", "poisson27:n=5", "--ranks", "1,4", ranks=2, says="mpirun -n 4")
        self.fail_on_every_rank(USAGE, "bench", "scaling", "poisson27:n={x}", ranks=2, says="nz={64}")
        self.fail_on_every_rank(USAGE, "bench", "scaling", "poisson27:n=5", "--type", "f16", "--backend", "host", ranks=2,
                                says="--rhs")
        self.fail_on_every_rank(USAGE, "bench", "scaling", "poison27:n=5", "--backend", "host", ranks=2, says="poisson27")
        self.fail_on_every_rank(USAGE, "bench", "scaling", "--exchange", "hallo", "--backend", "host", ranks=2, says="halo")
        self.fail_on_every_rank(INPUT, "bench", "scaling", "none.h5", "--backend", "host", ranks=2, says="none.h5")


class Papers(CliTest):
    def test_every_table(self):
        matrices = ["poisson27:n=4", "rmat:scale=6"]
        report = self.json_of("bench", "papers", *matrices, "--type", "f64", *QUICK)
        self.assertEqual(list(report["tables"]), ["paper_2", "paper_3", "paper_4", "paper_5"])
        self.assertEqual(report["wrong"], [])
        self.assertIn("csr_vector", report["missing_kernels"])  # a kernel of GPUs
        self.assertEqual(report["tables"]["paper_3"]["rows"], [])
        for number, expected in ((2, matrices), (4, matrices), (5, [*matrices, "mean"])):
            self.assertEqual([row["matrix"] for row in report["tables"][f"paper_{number}"]["rows"]], expected)

    def test_locality_and_cache_of_a_dense_row(self):
        row = self.json_of("bench", "papers", "random:n=1,cols=3200,row_nnz=3200", "--paper", 4, "--type", "f32", *QUICK)
        row = row["tables"]["paper_4"]["rows"][0]
        self.assertEqual(row["locality"], 32)
        self.assertAlmostEqual(row["one_line_hit_rate"], 31 / 32)
        self.assertAlmostEqual(row["l1_hit_rate"], 31 / 32)

    def test_text_and_classes(self):
        out = self.succeed("bench", "papers", "--size", "tiny", "--paper", "2,4", *QUICK).out
        for word in ("Paper 2", "Paper 4", "advised", "triangular", "very sparse", "locality", "L1 model"):
            self.assertIn(word, out)
        self.assertNotIn("Paper 5", out)

    def test_mistakes(self):
        self.fail_with(USAGE, "bench", "papers", "--paper", 7, says=["--paper", "whole number from 2 to 5"])
        self.fail_on_every_rank(USAGE, "bench", "papers", ranks=2, says=["bench papers", "without mpirun"])


if __name__ == "__main__":
    unittest.main()
