"""The benchmarks of products, ranks and papers: what they write is there and agrees, mistakes are refused, exit codes."""

import csv
import html.parser
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import time
import unittest

from support import DATA, INPUT, OK, PROGRAM, RESOURCES, ROOT, USAGE, CliTest, environment, run

QUICK = ("--backend", "host", "--warm", "--repetitions", 3)
CLASSES = ["elasticity", "poisson27", "poisson7", "rmat", "random", "5 diagonals", "7 diagonals", "dense band",
           "sparse band"]


def has_matplotlib():
    attempts = [[python, "-c", "import matplotlib"] for python in ("python3", "/usr/bin/python3") if shutil.which(python)]
    return any(subprocess.run(attempt, capture_output=True).returncode == 0 for attempt in attempts)


class Killed(CliTest):
    """A report is whole from its first row on, says that it is not complete, and stays when the benchmark is killed."""

    HOST = ("--backend", "host", "--no-verify", "--repetitions", 1)
    COMMANDS = {
        "kernels": (("kernels", "--size", "small", "--warm", *HOST), lambda r: r["cases"][0]["results"]),
        "spmm": (("spmm", "--size", "small", "--warm", *HOST), lambda r: r["cases"]),
        "batched": (("batched", *HOST), lambda r: r["cases"]),
        "features": (("features", "batch:count=9,dim=9,seed=1", "--in", ",".join(map(str, range(1, 129))), *HOST),
                     lambda r: r["results"]["rows"]),
        "papers": (("papers", "--size", "small", "--warm", *HOST), lambda r: r["tables"]["paper_2"]["rows"]),
        "scaling": (("scaling", *(f"poisson7:n={n}" for n in range(3, 203)), "--iterations", 1, "--backend", "host", "--csv",
                     "r.csv"), lambda r: r["cases"]),
        "io": (("io", "--matrix", "poisson7:n=4", "--repetitions", 100_000), lambda r: r["runs"]),
    }

    def rows_when_killed(self, name, how):
        arguments, rows_of = self.COMMANDS[name]
        self.path("r.json").unlink(missing_ok=True)
        process = subprocess.Popen([PROGRAM, "bench", *map(str, arguments), "--json", "r.json"], cwd=self.directory,
                                   env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            end = time.monotonic() + 60
            found = []
            while not found and time.monotonic() < end and process.poll() is None:
                if self.path("r.json").exists():
                    found = rows_of(json.loads(self.path("r.json").read_text()))  # whole at any moment
                time.sleep(0.01)
        finally:
            process.send_signal(how)
            process.wait()
        self.assertEqual(process.returncode, -how, f"{name} ended by itself")
        report = json.loads(self.path("r.json").read_text())
        self.assertIs(report["complete"], False)
        self.assertEqual(rows_of(report)[:len(found)], found)
        self.assertGreater(len(found), 0, name)
        return report

    def test_every_benchmark(self):
        for name, how in zip(self.COMMANDS, 4 * [signal.SIGTERM, signal.SIGKILL]):
            with self.subTest(name):
                report = self.rows_when_killed(name, how)
                if how == signal.SIGTERM:
                    self.assertEqual([file for file in self.files() if file.endswith(".tmp")], [])
                if name != "scaling":
                    continue
                lines = list(csv.DictReader(self.path("r.csv").read_text().splitlines(), strict=True))
                self.assertEqual(len(lines), 200)
                self.assertEqual(lines[0]["iteration_median_s"] == "", False)
                self.assertIn("not measured yet", lines[-1]["reason"])
                self.assertLessEqual(abs(len(report["cases"]) - sum(line["reason"] == "" for line in lines)), 1)

    def test_to_the_end(self):
        self.succeed("bench", "io", "--matrix", "poisson7:n=4", "--repetitions", 3, "--json", "io.json")
        report = json.loads(self.path("io.json").read_text())
        self.assertEqual((report["complete"], report["nnz"], len(report["runs"])), (True, 352, 3))
        self.assertEqual(sorted(run["read_s"] for run in report["runs"])[1], report["median"]["read_s"])
        for bench in ("kernels", "papers"):
            self.assertIs(self.json_of("bench", bench, "poisson7:n=3", "--type", "f64", *QUICK)["complete"], True)


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


class Batched(CliTest):
    TINY = "batch:count=5,dim=8,row_nnz=2,seed=1"
    HOST = ("--backend", "host", "--repetitions", 3)

    def test_every_type_and_number_of_columns(self):
        sources = (self.TINY, "batch:count=4,dim=0-9,row_nnz=0-3,seed=2")
        report = self.json_of("bench", "batched", *sources, "--rhs", "1,4", "--type", "f32,f64", "--kernel",
                              "auto,coo_host,auto", "--cold", *self.HOST)
        self.assertEqual([(c["type"], c["source"], c["rhs"]) for c in report["cases"]],
                         [(type, source, rhs) for type in ("f32", "f64") for source in sources for rhs in (1, 4)])
        self.assertEqual(report["machine"]["backend"], "host")
        self.assertTrue(report["verified"])
        for case in report["cases"]:
            self.assertEqual(case["ours"], "auto")
            self.assertEqual([r["method"] for r in case["results"]], ["auto", "coo_host"])
            self.assertEqual([r["choice"] for r in case["results"]], ["csr_host", "coo_host"])
            flops = 2 * case["batch"]["nnz"] * case["rhs"]
            for r in case["results"]:
                self.assertEqual(r["wrong_entries"], 0)
                for way, times in (("warm", "graph"), ("cold", "cold")):
                    self.assertLessEqual(r["times"][times]["min_s"], r["times"][times]["median_s"])
                    self.assertAlmostEqual(r["gflops"][way], 1e-9 * flops / r["times"][times]["median_s"])
            ours, other = case["results"]
            self.assertIsNone(ours["speed_up"]["warm"])
            self.assertAlmostEqual(other["speed_up"]["warm"],
                                   other["times"]["graph"]["median_s"] / ours["times"]["graph"]["median_s"])
            self.assertGreater(case["copy"]["graph"]["median_s"], 0)

    def test_bytes_that_must_move(self):
        case = self.json_of("bench", "batched", self.TINY, "--rhs", 4, *self.HOST)["cases"][0]
        self.assertEqual(case["batch"], {"count": 5, "rows": 40, "cols": 40, "nnz": 80})
        self.assertEqual(case["compulsory_bytes"], 4 * 41 + 8 * 80 + 4 * 4 * (40 + 40))

    def test_figures_of_the_paper(self):
        report = self.json_of("bench", "batched", "--figure", "8,6a", "--no-verify", "--rhs", 2, *self.HOST)
        self.assertEqual([(c["figure"], c["batch"]["count"], c["rhs"]) for c in report["cases"]],
                         [("6a", 50, 2), ("8", 100, 2)])
        self.assertEqual(report["cases"][0]["batch"]["nnz"], 50 * 50 * 2)
        self.assertFalse(report["verified"])
        counts = [c["rhs"] for c in self.json_of("bench", "batched", "--figure", "6a", "--no-verify", *self.HOST)["cases"]]
        self.assertEqual(counts, [8, 16, 32, 64])

    def test_text(self):
        out = self.succeed("bench", "batched", self.TINY, "--rhs", "4,8", "--kernel", "auto,coo_host", *self.HOST).out
        for word in (self.TINY, "5 matrices, 40 rows, 80 nonzeros", "GFLOP/s, warm caches", "of copy rate", "csr_host",
                     "Speed-ups over all cases", "geometric mean"):
            self.assertIn(word, out)

    @unittest.skipUnless(has_matplotlib(), "matplotlib is missing")
    def test_plot(self):
        self.succeed("bench", "batched", self.TINY, "--figure", "6a", "--rhs", "4,8", "--plot", "b.svg", *self.HOST)
        picture = self.path("b.svg").read_text()
        for word in ("Fig. 6a, f32", "columns of the dense matrices", "GFLOP/s"):
            self.assertIn(word, picture)

    def test_mistakes(self):
        self.fail_with(USAGE, "bench", "batched", "--figure", "9", *self.HOST, says=["--figure", "9", "large"])
        self.fail_with(USAGE, "bench", "batched", self.TINY, "--kernel", "csr_hots", *self.HOST, says="did you mean 'csr_host'")
        self.fail_with(USAGE, "bench", "batched", self.TINY, "--rhs", 0, *self.HOST, says="--rhs")
        self.fail_with(USAGE, "bench", "batched", "batch:dims=8", *self.HOST, says="dim")
        self.fail_with(INPUT, "bench", "batched", "none.h5", *self.HOST, says="none.h5")
        self.fail_on_every_rank(USAGE, "bench", "batched", ranks=2, says=["bench batched", "without mpirun"])


class Features(CliTest):
    HOST = Batched.HOST

    def test_numbers_of_features(self):
        report = self.json_of("bench", "features", Batched.TINY, "--in", "3,8", "--out", "5,1", *self.HOST)
        self.assertEqual(report["machine"]["backend"], "host")
        self.assertTrue(report["verified"])
        rows = report["results"]["rows"]
        self.assertEqual([(r["batch"], r["in"], r["out"]) for r in rows], [(Batched.TINY, 3, 5), (Batched.TINY, 8, 1)])
        for row in rows:
            self.assertGreater(row["us"], 0)
            self.assertLess(row["error"], 40)
            self.assertIsNone(row["two_us"])
        square = self.json_of("bench", "features", Batched.TINY, "--in", 7, "--no-verify", *self.HOST)["results"]["rows"][0]
        self.assertEqual((square["in"], square["out"], square["error"]), (7, 7, None))

    def test_mistakes(self):
        self.fail_with(USAGE, "bench", "features", "--in", "3,8", "--out", 5, *self.HOST, says=["--in has 2", "--out 1"])
        self.fail_with(USAGE, "bench", "features", "--in", 129, *self.HOST, says=["--in", "128"])
        self.fail_with(INPUT, "bench", "features", "none.h5", *self.HOST, says="none.h5")
        self.fail_on_every_rank(USAGE, "bench", "features", ranks=2, says=["bench features", "without mpirun"])


class Kernels(CliTest):
    def test_every_class_in_both_types(self):
        report = self.json_of("bench", "kernels", "--size", "tiny", *QUICK)
        self.assertEqual([(case["matrix"]["name"], case["type"]) for case in report["cases"]],
                         [(name, type) for name in CLASSES for type in ("f32", "f64")])
        self.assertEqual(report["machine"]["backend"], "host")
        self.assertGreater(report["machine"]["copy_bandwidth_bytes_per_s"], 0)
        self.assertEqual(report["yardstick"], "best CSR kernel")
        for case in report["cases"]:
            measured = [r for r in case["results"] if "refused" not in r]
            self.assertIn("csr_host", [r["kernel"] for r in measured])
            for r in measured:
                self.assertEqual(r["wrong_rows"], 0)
                self.assertGreater(r["median_s"], 0)
                self.assertLessEqual(r["min_s"], r["median_s"])
                self.assertLessEqual(r["median_s"], r["max_s"])
                self.assertAlmostEqual(r["ratio"], case["yardstick"]["median_s"] / r["median_s"])
            best = min(r["median_s"] for r in measured)
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


class Page(html.parser.HTMLParser):
    """What a page loads, its words, and the JSON in it."""

    LOADS = {"src", "href", "xlink:href", "data", "srcset", "poster", "action", "background"}

    def __init__(self, text):
        super().__init__()
        self.loads, self.words, self.json, self.pictures, self.reads_json, self.hidden = [], "", "", 0, False, False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.loads += [value for name, value in attributes if name in self.LOADS and not (value or "").startswith("#")]
        self.pictures += tag == "svg"
        self.reads_json = tag == "script" and values.get("id") == "shardmat-report"
        self.hidden = tag in ("script", "style")

    def handle_endtag(self, tag):
        self.reads_json = self.hidden = False

    def handle_data(self, data):
        self.json += data if self.reads_json else ""
        self.words += "" if self.hidden else data


class Scaling(CliTest):
    STUDY = ("bench", "scaling", "poisson27:n=6", "poisson27:n=5,nz={4}", "--exchange", "halo,peer", "--iterations", 5,
             "--backend", "host")  # the host has no peer exchange

    def test_what_was_measured_before_an_error_is_kept(self):
        result = self.call("bench", "scaling", "poisson27:n=5", "missing.h5", "--iterations", 2, "--backend", "host", "--json",
                           "s.json", ranks=2)
        self.assertEqual(result.code, INPUT, result)
        self.assertIn("missing.h5", result.err)
        cases = json.loads(self.path("s.json").read_text())["cases"]
        self.assertEqual([(case["matrix"], case["ranks"]) for case in cases], [("poisson27:n=5", 1), ("poisson27:n=5", 2)])
        self.assertTrue(all(case["report"]["verification"]["passed"] for case in cases))

    def scaling(self, *options, **more):
        return self.succeed(*self.STUDY, *options, ranks=2, **more)

    def test_some_of_the_ranks_with_each_exchange(self):
        self.succeed("partition", DATA / "stokes.mtx.gz", "stokes.h5")
        report = self.json_of("bench", "scaling", "poisson27:n=7", "stokes.h5", "--ranks", "1,3", "--exchange",
                              "halo,allgather", "--rhs", 2, "--iterations", 3, "--backend", "host", ranks=3)
        self.assertEqual([(c["matrix"].split("/")[-1], c["ranks"], c["exchange_asked"]) for c in report["cases"]],
                         [(matrix, ranks, exchange) for matrix in ("poisson27:n=7", "stokes.h5")
                          for ranks, exchange in ((1, "auto"), (3, "halo"), (3, "allgather"))])
        for case in report["cases"]:
            ranks = case["report"]["ranks"]
            self.assertEqual(len(ranks), case["ranks"])
            self.assertEqual(sum(r["nnz"] for r in ranks), case["report"]["matrix"]["nnz"])
            self.assertEqual(max(r["product_s"] for r in ranks),
                             case["report"]["local_product"]["medians_of_ranks_s"]["max"])
            self.assertEqual(case["report"]["exchange"]["name"], "none" if case["ranks"] == 1 else case["exchange_asked"])
            self.assertEqual(case["report"]["operation"]["right_hand_sides"], 2)
            self.assertTrue(case["report"]["verification"]["passed"])
            self.assertGreater(case["efficiency"], 0)
            self.assertEqual(case["base_ranks"], 1)
            product, parts = case["report"]["local_product"]["medians_of_ranks_s"], case["breakdown"]
            self.assertEqual(parts["product_s"], product["mean"])
            self.assertAlmostEqual(parts["product_s"] + parts["imbalance_s"], product["max"], delta=1e-9)
            waiting = max(0, case["report"]["iteration"]["median_s"] - product["max"])
            self.assertAlmostEqual(parts["waiting_s"], waiting, delta=1e-9)
            if case["ranks"] > 1 and "forecast" in case:  # of the exchange that the model expects to be fastest
                self.assertEqual(case["forecast"]["exchange"], case["exchange_asked"])
        self.assertEqual([c["efficiency"] for c in report["cases"] if c["ranks"] == 1], [1, 1])
        for matrix in {case["matrix"] for case in report["cases"]}:
            foretold = [c for c in report["cases"] if c["matrix"] == matrix and c["ranks"] == 3 and "forecast" in c]
            self.assertEqual(len(foretold), 1)

    def test_weak(self):
        report = self.json_of("bench", "scaling", "poisson27:n=5,nz={4}", "--iterations", 2, "--backend", "host", ranks=2)
        self.assertEqual([(c["weak"], c["ranks"], c["report"]["matrix"]["rows"]) for c in report["cases"]],
                         [(True, 1, 100), (True, 2, 200)])

    def test_text(self):
        out = self.succeed("bench", "scaling", "poisson27:n=5", "--backend", "host", "--iterations", 2, ranks=2).out
        for word in ("125 rows", "strong scaling", "imbalance", "waiting", "100.0 %", "none", "auto: halo"):
            self.assertIn(word, out)
        self.assertIn("(weak scaling): 100 rows", self.scaling().out)
        self.assertLessEqual(max(map(len, self.scaling().out.splitlines())), 125)

    def test_csv(self):
        self.scaling("--json", "s.json", "--csv", "s.csv")
        data = self.path("s.csv").read_bytes()
        self.assertEqual(data.count(b"\r\n"), data.count(b"\n"))
        lines = list(csv.DictReader(data.decode().splitlines(), strict=True))
        cases = json.loads(self.path("s.json").read_text())["cases"]
        self.assertEqual([(line["matrix"], line["scaling"], int(line["ranks"]), line["exchange_asked"]) for line in lines],
                         [(c["matrix"], "weak" if c["weak"] else "strong", c["ranks"], c["exchange_asked"]) for c in cases])
        self.assertEqual(len(lines), 6)
        for line, case in zip(lines, cases):
            self.assertNotIn(None, [*line, *line.values()], "as many fields as columns")
            if case["exchange_asked"] == "peer":
                self.assertEqual(line["reason"], case["why_not"])
                self.assertEqual(line["iteration_median_s"], "")
                continue
            report = case["report"]
            self.assertEqual(line["reason"], "")
            self.assertEqual(int(line["nonzeros"]), report["matrix"]["nnz"])
            for column, figure in (("iteration_median_s", report["iteration"]["median_s"]),
                                   ("product_mean_s", case["breakdown"]["product_s"]),
                                   ("imbalance_s", case["breakdown"]["imbalance_s"]),
                                   ("waiting_s", case["breakdown"]["waiting_s"]),
                                   ("exchange_alone_s", report["exchange_alone"]["median_s"]),
                                   ("efficiency", case["efficiency"])):
                self.assertAlmostEqual(float(line[column]), figure, delta=1e-12, msg=column)
        text = self.succeed("bench", "scaling", "--help").out.split("Columns of the CSV file")[1]
        columns = re.findall(r"^  (\w+) +\S", text, re.MULTILINE)
        self.assertEqual(columns, list(lines[0]))

    def test_csv_on_standard_output_is_nothing_but_csv_and_quotes(self):
        shutil.copy(DATA / "stokes.mtx.gz", self.path("s.mtx.gz"))
        self.succeed("partition", "s.mtx.gz", 'a "b", c.h5')
        out = self.succeed("bench", "scaling", 'a "b", c.h5', "--iterations", 2, "--backend", "host", "--csv", "-").out
        lines = list(csv.DictReader(out.splitlines(), strict=True))
        self.assertEqual([line["matrix"] for line in lines], ['a "b", c.h5'])

    @unittest.skipUnless(has_matplotlib(), "matplotlib is missing")
    def test_html_is_one_page_with_all_figures(self):
        name = "a<!--<script>&amp;.h5"
        self.succeed("partition", DATA / "stokes.mtx.gz", name)
        self.succeed("bench", "scaling", name, "poisson27:n=5,nz={4}", "--exchange", "halo,peer", "--iterations", 5,
                     "--backend", "host", "--json", "s.json", "--html", "s.html", ranks=2)
        text = self.path("s.html").read_text()
        page = Page(text)
        self.assertEqual(json.loads(page.json), json.loads(self.path("s.json").read_text()))
        self.assertEqual(page.loads, [])
        self.assertNotRegex(text, r"https?:|@import|url\((?!#)")
        self.assertEqual(page.pictures, 6)
        report = json.loads(page.json)
        for word in (name, "strong scaling", "weak scaling", "waiting for x", "cannot be had", report["software"],
                     report["command"], report["date"][:10]):
            self.assertIn(word, page.words)
        for case in report["cases"]:
            if "report" in case:
                seconds = case["report"]["iteration"]["median_s"]
                self.assertTrue(any(text in page.words for text in (f"{1e6 * seconds:.1f}\u00a0µs", f"{1e3 * seconds:.2f}\u00a0ms")),
                                seconds)
        self.assertEqual(self.files(), sorted([name, "s.html", "s.json"]))

    @unittest.skipUnless(has_matplotlib(), "matplotlib is missing")
    def test_where_nothing_can_be_measured_the_files_say_why(self):
        result = self.call("bench", "scaling", "poisson27:n=5", "--ranks", 2, "--exchange", "peer", "--backend", "host",
                           "--csv", "s.csv", "--html", "s.html", ranks=2)
        self.assertEqual(result.code, RESOURCES, result)
        for name in ("s.csv", "s.html"):
            self.assertIn("cannot be had", self.path(name).read_text())

    def test_an_exchange_without_any_figures_is_an_error(self):
        result = self.call("bench", "scaling", "poisson27:n=5", "--exchange", "peer", "--iterations", 2, "--backend", "host", ranks=2)
        self.assertEqual(result.code, RESOURCES, result)
        self.assertIn("peer", result.messages[0])
        self.assertIn("several ranks", result.messages[0])

    def test_columns_in_blocks_have_no_forecast(self):
        self.succeed("bench", "scaling", "poisson27:n=5", "--rhs", 8, "--column-block", 2, "--iterations", 2, "--backend", "host",
                     "--json", "s.json", ranks=2)
        cases = json.loads(self.path("s.json").read_text())["cases"]
        self.assertEqual([case["report"]["exchange"]["column_block"] for case in cases], [8, 2])
        self.assertEqual(["forecast" in case for case in cases], [True, False])
        (found,) = json.loads(self.succeed("predict", "s.json", "--json", "-").out)
        self.assertEqual(["measured_s" in ranks for ranks in found["ranks"]], [True, False])

    def test_the_null_device_takes_any_number_of_results(self):
        null = os.stat(os.devnull)
        self.succeed("bench", "scaling", "poisson27:n=5", "--iterations", 2, "--backend", "host", "--json", os.devnull, "--csv",
                     os.devnull)
        self.assertEqual(os.stat(os.devnull).st_rdev, null.st_rdev)
        self.assertTrue(stat.S_ISCHR(os.stat(os.devnull).st_mode), "it was replaced by a file")

    def test_files_are_refused_before_the_work(self):
        endless = ("bench", "scaling", "poisson27:n=5", "--iterations", 10**12, "--backend", "host")
        for option in ("--csv", "--html", "--json", "--plot"):
            self.fail_on_every_rank(INPUT, *endless, option, "none/s.svg", ranks=2, says=["none", "create it first"])
        self.fail_on_every_rank(USAGE, *endless, "--plot", "s.gif", ranks=2, says=".svg, .png or .pdf")
        self.fail_on_every_rank(USAGE, *endless, "--csv", "-", "--json", "-", ranks=2, says="name a file for one of them")
        self.write("matplotlib.py", "raise ImportError")
        self.fail_on_every_rank(RESOURCES, *endless, "--html", "s.html", ranks=2, env={"PYTHONPATH": str(self.directory)},
                                says=["--html", "apt-get install python3-matplotlib"])

    @unittest.skipUnless(has_matplotlib(), "matplotlib is missing")
    def test_slurm_script(self):
        """The sample script with a stand-in for srun that starts the ranks by mpirun."""
        self.path("bin").mkdir()
        srun = self.path("bin/srun")
        srun.write_text("""#!/bin/bash
            while [[ $1 == -* ]]; do case $1 in --ntasks=*) ranks=${1#*=} ;; esac; shift; done
            exec mpirun -n "$ranks" "$@"
            """)
        srun.chmod(0o755)
        path = os.pathsep.join([str(self.path("bin")), str(pathlib.Path(PROGRAM).parent), os.environ["PATH"]])
        slurm = {"SLURM_JOB_NUM_NODES": "2", "SLURM_NTASKS_PER_NODE": "1", "SLURM_CPUS_PER_TASK": "1", "SLURM_JOB_ID": "7"}
        result = run([ROOT / "deploy" / "scaling.slurm", "poisson27:n=5", "poisson27:n=5,nz={4}"], self.directory,
                     env={"PATH": path, **slurm})
        self.assertEqual(result.code, OK, result)
        folder = self.path(next(name for name in self.files() if name.startswith("scaling-")))
        self.assertRegex(folder.name, r"^scaling-\d{4}-\d\d-\d\d-\d{6}-job7$")
        self.assertEqual(sorted(p.name for p in folder.iterdir()), ["scaling.csv", "scaling.html", "scaling.json"])
        cases = json.loads((folder / "scaling.json").read_text())["cases"]
        self.assertEqual({(c["weak"], c["ranks"]) for c in cases}, {(False, 1), (False, 2), (True, 1), (True, 2)})
        self.assertTrue(all("report" in case for case in cases))

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
        self.fail_on_every_rank(USAGE, "bench", "scaling", "poisson27:n=5", "--exchange", "none", "--backend", "host", ranks=2,
                                says="exchange 'none' is for one rank")
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

    def test_the_example_of_its_help(self):
        self.write("nothing.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 0\n")
        out = self.succeed("bench", "papers", "poisson27:n=4", "nothing.mtx", *QUICK, "--json", "papers.json").out
        self.assertEqual(out.count("(nothing was measured)"), 1)  # threads a row, a matter of GPUs
        for paper in (2, 3, 4, 5):
            self.assertIn(f"Paper {paper}: ", out)
        self.assertIs(json.loads(self.path("papers.json").read_text())["complete"], True)

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
