"""Scaling studies: what they measure, write and draw agrees, mistakes are refused."""

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

from support import DATA, INPUT, LIMIT, OK, PROGRAM, RANK_LOST, RESOURCES, ROOT, USAGE, CliTest, Ranks, environment, has_matplotlib, run

QUICK = ("--backend", "host", "--warm", "--repetitions", 3)


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
        self.assertEqual([(case["matrix"], case["ranks"]) for case in cases], [("poisson27:n=5", 1), ("poisson27:n=5", 2), ("poisson27:n=5", 2)])
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
            iteration = case["report"]["iteration"]["median_s"]
            self.assertEqual(parts["product_s"], min(product["mean"], iteration))
            self.assertAlmostEqual(sum(parts.values()), iteration, delta=1e-12)
            self.assertGreaterEqual(min(parts.values()), 0)
            if case["ranks"] > 1 and "forecast" in case:  # of the exchange that the model expects to be fastest
                self.assertEqual(case["forecast"]["exchange"], case["exchange_asked"])
        self.assertEqual([c["efficiency"] for c in report["cases"] if c["ranks"] == 1], [1, 1])
        for matrix in {case["matrix"] for case in report["cases"]}:
            foretold = [c for c in report["cases"] if c["matrix"] == matrix and c["ranks"] == 3 and "forecast" in c]
            self.assertEqual(len(foretold), 1)

    def test_every_rank_has_the_same_threads_in_every_case(self):
        usable = int(re.search(r"(\d+) host threads", run(
            ["env", "--unset=OMP_NUM_THREADS", PROGRAM, "bench", "kernels", "poisson7:n=2", "--kernel", "csr_host", "--type", "f64",
             *QUICK], self.directory).out)[1])
        options = ("bench", "scaling", "poisson27:n=5", "--iterations", 2, "--backend", "host", "--no-forecast", "--json", "s.json",
                   "--csv", "s.csv")
        for threads, more, setting in ((2, ("--threads", 2), "OMP_NUM_THREADS=1"),
                                       (max(1, usable // 2), (), "--unset=OMP_NUM_THREADS")):
            result = run(["env", setting, "mpirun", "-n", 2, PROGRAM, *options, *more], self.directory)
            self.assertEqual(result.code, OK, result)
            out = result.out
            report = json.loads(self.path("s.json").read_text())
            self.assertEqual(report["threads_per_rank"], threads)
            self.assertEqual([case["report"]["threads_per_rank"] for case in report["cases"]], [threads] * 3)
            self.assertIn(f", {threads} thread{'s' * (threads > 1)} a rank", " ".join(out.split()))  # wherever the line ends
            lines = list(csv.DictReader(self.path("s.csv").read_text().splitlines(), strict=True))
            self.assertEqual([line["threads_per_rank"] for line in lines], [str(threads)] * 3)

    def test_more_ranks_than_cores(self):
        threads = len(os.sched_getaffinity(0)) + 1
        out = self.succeed("bench", "scaling", "poisson27:n=5", "--iterations", 2, "--backend", "host", "--no-forecast", "--threads",
                           threads, "--json", "s.json", ranks=1).out
        self.assertIn(f"1 rank with {threads} threads each share", out)
        self.assertIn("share", json.loads(self.path("s.json").read_text())["cases"][0]["notes"][0])

    def test_weak(self):
        report = self.json_of("bench", "scaling", "poisson27:n=5,nz={4}", "--iterations", 2, "--backend", "host", ranks=2)
        self.assertEqual([(c["weak"], c["ranks"], c["report"]["matrix"]["rows"]) for c in report["cases"]],
                         [(True, 1, 100), (True, 2, 200), (True, 2, 200)])

    def test_all_gather_stands_beside_the_chosen_exchange(self):
        options = ("bench", "scaling", "poisson27:n=5", "--iterations", 2, "--backend", "host", "--no-forecast")
        out = self.succeed(*options, "--json", "s.json", ranks=3).out
        cases = json.loads(self.path("s.json").read_text())["cases"]
        self.assertEqual([(case["ranks"], case["exchange_asked"]) for case in cases],
                         [(1, "auto"), (2, "auto"), (2, "allgather"), (3, "auto"), (3, "allgather")])
        for case in cases:
            received = case["report"]["exchange"]["bytes_received"]["max"]
            ranges = [rank["rows"] for rank in case["report"]["ranks"]]
            if case["exchange_asked"] == "allgather":  # every rank gets all entries of the others
                self.assertGreaterEqual(received, 8 * (125 - max(ranges)))
                self.assertGreater(received, before)
            before = received
            self.assertIn(f"{received:.0f} B" if received < 1000 else f"{received / 1000:.3g} kB", out)

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
                                   ("product_s", case["breakdown"]["product_s"]),
                                   ("product_mean_s", report["local_product"]["medians_of_ranks_s"]["mean"]),
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
        written = json.loads(self.path("s.json").read_text())
        written.pop("run")
        self.assertEqual(json.loads(page.json), written)
        self.assertEqual(page.loads, [])
        self.assertNotRegex(text, r"https?:|@import|url\((?!#)")
        self.assertEqual(page.pictures, 6)
        pictures = "".join(re.findall(r"<svg.*?</svg>", text, re.DOTALL))  # in attributes, which makers of PDF know
        for word in (' fill="#2f6f9f"', ' stroke="#2f6f9f"', ' text-anchor="middle"', ' font-size="9"'):
            self.assertIn(word, pictures)
        self.assertNotRegex(pictures, r' style=|var\(')
        self.assertIn('svg [fill="#2f6f9f"] { fill: var(--blue); }', text)
        report = json.loads(page.json)
        for word in (name, "strong scaling", "weak scaling", "waiting for x", "predicted", "Who measured", "load average", "cannot be had", report["software"],
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
        self.succeed("bench", "scaling", "poisson27:n=5", "--rhs", 8, "--column-block", 2, "--iterations", 2, "--backend", "host", "--exchange", "auto",
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

    SOLVES = ("bench", "scaling", "poisson7:n=12", "poisson7:n=8,nz={8}", "--solve", "--no-products", "--backend", "host", "--type", "f64",
              "--repetitions", 2)

    def test_solves_strong_and_weak(self):
        out = self.succeed(*self.SOLVES, "--preconditioner", "multigrid,jacobi", "--settings", "rtol=1e-9", "--json", "s.json", ranks=2).out
        study = json.loads(self.path("s.json").read_text())
        self.assertEqual(study["cases"], [])
        self.assertEqual([(c["matrix"], c["weak"], c["ranks"], c["preconditioner_asked"]) for c in study["solves"]],
                         [(matrix, weak, ranks, name) for matrix, weak in (("poisson7:n=12", False), ("poisson7:n=8,nz={8}", True))
                          for ranks in (1, 2) for name in ("multigrid", "jacobi")])
        for case in study["solves"]:
            report, samples = case["report"], case["samples"]
            self.assertEqual(report["solver"]["preconditioner"], case["preconditioner_asked"])
            self.assertEqual(len(report["ranks"]), case["ranks"])
            self.assertEqual(report["matrix"]["rows"], 1728 if not case["weak"] else 512 * case["ranks"])
            self.assertEqual((len(samples["set_up_s"]), len(samples["solve_s"])), (2, 2))
            wholes = [a + b for a, b in zip(samples["set_up_s"], samples["solve_s"])]
            self.assertIn(case["whole_s"], wholes)
            self.assertLessEqual(case["residual"], 1.01e-9)
            self.assertEqual((case["iterations"], case["base_ranks"]), (report["iterations"], 1))
            base = next(c for c in study["solves"] if c["matrix"] == case["matrix"] and c["ranks"] == 1
                        and c["preconditioner_asked"] == case["preconditioner_asked"])
            perfect = base["whole_s"] / case["whole_s"] / (1 if case["weak"] else case["ranks"])
            self.assertAlmostEqual(case["efficiency"], perfect, places=9)
        for word in ("Solves of poisson7:n=12 (strong scaling): 1,728 rows", "(weak scaling): 512 rows", "cg + multigrid", "cg + jacobi", "set-up +"):
            self.assertIn(word, out)
        self.assertLessEqual(max(map(len, out.splitlines())), 125)

    def test_solves_beside_products_and_one_that_does_not_converge(self):
        out = self.succeed("bench", "scaling", "poisson7:n=10", "--solve", "--preconditioner", "multigrid,none", "--settings", "max_iterations=20",
                           "--repetitions", 1, "--iterations", 2, "--exchange", "auto", "--backend", "host", "--json", "s.json", "--no-forecast",
                           ranks=2).out
        study = json.loads(self.path("s.json").read_text())
        self.assertEqual((len(study["cases"]), len(study["solves"])), (2, 4))
        for case in study["solves"]:
            if case["preconditioner_asked"] == "none":
                self.assertIn("cg with none did not converge", case["why_not"])
                self.assertNotIn("report", case)
            else:
                self.assertEqual(case["report"]["solver"]["preconditioner"], "multigrid")
        self.assertIn("did not converge", out)
        result = self.call("bench", "scaling", "poisson7:n=10", "--solve", "--no-products", "--preconditioner", "none", "--settings",
                           "max_iterations=2", "--backend", "host", ranks=2)
        self.assertEqual(result.code, RESOURCES, result)
        self.assertIn("no solve could be measured: cg with none did not converge", result.messages[0])

    def test_options_of_solves_are_checked_before_the_work(self):
        study = ("bench", "scaling", "poisson27:n=5", "--backend", "host", "--iterations", 10**12)
        self.fail_on_every_rank(USAGE, *study, "--no-products", ranks=2, says="--solve")
        self.fail_on_every_rank(USAGE, *study, "--solve", "--preconditioner", "multigird", ranks=2, says="multigrid")
        self.fail_on_every_rank(USAGE, *study, "--solve", "--settings", "rtoll=1", ranks=2, says="rtol")
        self.fail_on_every_rank(USAGE, *study, "--solve", "--no-products", "--csv", "s.csv", ranks=2, says="products alone")

    def test_the_end_names_the_run(self):
        options = ("bench", "scaling", "poisson27:n=5", "--iterations", 2, "--backend", "host", "--no-forecast", "--json", "s.json")
        out = self.succeed(*options, ranks=2, env={"SLURM_JOB_ID": "4711", "OMPI_MCA_btl": "self,vader"}).out
        (found,) = json.loads(self.path("s.json").read_text())["runs"]
        self.assertEqual((found["job"], found["ranks"], found["measured"]), ("Slurm 4711", 2, 3))
        self.assertEqual(found["transport_settings"]["OMPI_MCA_btl"], "self,vader")
        cores = ",".join(group["ranks"] for group in found["binding"])
        self.assertIn(cores, ("0-1", "0,1"))
        self.assertIn("bench scaling poisson27:n=5", found["command"])
        text = " ".join(out[out.rindex("\nRun\n"):].split())
        for word in ("job", "Slurm 4711", found["mpi"], f'cores {found["binding"][0]["cores"]}', "load average", found["version"]):
            self.assertIn(word, text)
        # What this machine and this build have.
        version = json.loads(self.succeed("--version", "--json").out)
        self.assertEqual(found["commit"], version.get("commit", ""))
        for word in (found["commit"] and f'shardmat {found["version"]} ({found["commit"]})', found["network"] and f'{found["mpi"]}; {found["network"]}'):
            self.assertIn(word, text)
        has_clocks = "cpu MHz" in pathlib.Path("/proc/cpuinfo").read_text()
        self.assertTrue("cpu_mhz" in found or not has_clocks)
        if "cpu_mhz" in found:
            self.assertRegex(text, rf'clocks CPU ({found["cpu_mhz"]["min"] / 1000:.2f} to )?{found["cpu_mhz"]["max"] / 1000:.2f} GHz')
        for gpu in found.get("gpus", ()):
            self.assertIn(f'{gpu["name"]} {gpu["sm_mhz"]} of {gpu["sm_mhz_possible"]} MHz', text)

    def interrupted(self, study, at_least=2):
        """Starts a study and ends it with SIGTERM when so many of its cases are in the file; the file then."""
        for _ in range(5):
            self.path("s.json").unlink(missing_ok=True)
            process = subprocess.Popen(list(map(str, [PROGRAM, *study])), cwd=self.directory, env=environment(), stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            end = time.monotonic() + LIMIT
            cases = 0
            while cases < at_least and process.poll() is None and time.monotonic() < end:
                if self.path("s.json").exists():
                    kept = json.loads(self.path("s.json").read_text())
                    cases = len(kept["cases"]) + len(kept["solves"])
                time.sleep(0.001)
            process.terminate()
            process.communicate(timeout=LIMIT)
            kept = json.loads(self.path("s.json").read_text())
            if not kept["complete"]:
                self.assertEqual(process.returncode, -signal.SIGTERM)
                return kept
        return self.fail("the study was always faster than its end")

    STOPPED = ("bench", "scaling", *(f"poisson27:n={n}" for n in range(5, 17)), "--solve", "--preconditioner", "jacobi", "--iterations", 4000,
               "--backend", "host", "--json", "s.json", "--csv", "s.csv")

    def test_a_study_goes_on_where_it_was_stopped(self):
        kept = self.interrupted(self.STOPPED)
        cases = len(kept["cases"]) + len(kept["solves"])
        self.assertGreaterEqual(cases, 2)
        result = self.succeed(*self.STOPPED)
        self.assertIn(f"Going on with s.json: {cases} of 24 cases were measured before", result.err)
        study = json.loads(self.path("s.json").read_text())
        self.assertTrue(study["complete"])
        self.assertEqual([len(study["cases"]), len(study["solves"])], [12, 12])
        for name in ("cases", "solves"):
            for before, after in zip(kept[name], study[name]):
                self.assertEqual(before["report"], after["report"])
        self.assertEqual([found["measured"] for found in study["runs"]], [cases, 24 - cases])
        self.assertIn("Run 2 of 2", result.out)
        lines = list(csv.DictReader(self.path("s.csv").read_text().splitlines(), strict=True))
        self.assertEqual([line["reason"] for line in lines], [""] * 12)
        self.assertEqual(len(study["models"]), 12)
        again = self.succeed(*self.STOPPED[:3], *self.STOPPED[14:])  # a finished study is replaced
        self.assertNotIn("Going on", again.err)

    def test_a_study_does_not_go_on_with_other_options(self):
        kept = self.interrupted(self.STOPPED)
        text = self.path("s.json").read_bytes()
        other = [*self.STOPPED, "--type", "f32", "--kernel", "csr_host"]
        result = self.call(*other)
        self.assertEqual(result.code, USAGE, result)
        for word in ("s.json holds an unfinished study with other options: type f64, not f32; kernel auto, not csr_host", "--anew"):
            self.assertIn(word, result.messages[0])
        self.assertEqual(self.path("s.json").read_bytes(), text)
        few = ("bench", "scaling", "poisson27:n=5", "--iterations", 2, "--backend", "host", "--json", "s.json", "--anew")
        self.succeed(*few)
        study = json.loads(self.path("s.json").read_text())
        self.assertEqual((len(study["cases"]), len(study["runs"])), (1, 1))
        self.assertFalse(kept["complete"])

    def test_a_study_goes_on_after_a_lost_rank(self):
        study = ("bench", "scaling", *(f"poisson27:n={n}" for n in range(5, 12)), "--iterations", 3000, "--exchange", "auto", "--backend", "host",
                 "--no-forecast", "--json", "s.json")
        cases = []
        with Ranks([PROGRAM, *study, "--timeout", 20], 2, self.path("ranks"), env=environment(), cwd=self.directory) as ranks:
            end = time.monotonic() + LIMIT
            while len(cases) < 2 and time.monotonic() < end:
                time.sleep(0.001)
                if self.path("s.json").exists():
                    cases = json.loads(self.path("s.json").read_text())["cases"]
            os.kill(ranks.pid(1), signal.SIGKILL)
            (code,) = ranks.wait_for_exit([0], LIMIT)
            self.assertEqual(code, RANK_LOST, ranks.report())
        kept = json.loads(self.path("s.json").read_text())
        self.assertFalse(kept["complete"])
        result = self.succeed(*study, ranks=2)
        self.assertIn(f"{len(kept['cases'])} of 14 cases were measured before", result.err)
        found = json.loads(self.path("s.json").read_text())
        self.assertEqual([case["report"] for case in found["cases"][:len(kept["cases"])]], [case["report"] for case in kept["cases"]])
        self.assertEqual((found["complete"], len(found["cases"])), (True, 14))

    def test_ranks_take_up_a_study_together(self):
        study = ("bench", "scaling", "poisson27:n=5", "poisson27:n=6", "--iterations", 2, "--backend", "host", "--json", "s.json")
        self.succeed(*study, ranks=2)
        kept = json.loads(self.path("s.json").read_text())
        kept["complete"], kept["cases"] = False, kept["cases"][:4]
        self.path("s.json").write_text(json.dumps(kept))
        self.assertIn("4 of 6", self.succeed(*study, ranks=2).err)
        found = json.loads(self.path("s.json").read_text())
        self.assertEqual([case["report"]["iteration"] for case in found["cases"][:4]], [case["report"]["iteration"] for case in kept["cases"]])
        self.assertEqual(len(found["cases"]), 6)
        self.assertTrue(all("forecast" in case for case in found["cases"] if case["ranks"] == 1))
        kept["cases"][0]["report"].pop("iteration")
        self.path("s.json").write_text(json.dumps(kept))
        result = self.call(*study, ranks=2)
        self.assertEqual(result.code, INPUT, result)
        self.assertIn("cannot read", result.messages[0])

    def test_files_are_refused_before_the_work(self):
        endless = ("bench", "scaling", "poisson27:n=5", "--iterations", 10**12, "--backend", "host")
        for option in ("--csv", "--html", "--json", "--plot"):
            self.fail_on_every_rank(INPUT, *endless, option, "none/s.svg", ranks=2, says=["none", "create it first"])
        self.fail_on_every_rank(USAGE, *endless, "--plot", "s.gif", ranks=2, says=".svg, .png or .pdf")
        self.fail_on_every_rank(USAGE, *endless, "--csv", "-", "--json", "-", ranks=2, says="name a file for one of them")
        self.write("matplotlib.py", "raise ImportError")
        self.fail_on_every_rank(RESOURCES, *endless, "--html", "s.html", ranks=2, env={"PYTHONPATH": str(self.directory)},
                                says=["--html", "neither python3 on the PATH nor /usr/bin/python3 has it",
                                      "apt-get install python3-matplotlib"])

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
        result = run([ROOT / "deploy" / "slurm" / "scaling.slurm", "poisson27:n=5", "poisson27:n=5,nz={4}"], self.directory,
                     env={"PATH": path, **slurm})
        self.assertEqual(result.code, OK, result)
        folder = self.path(next(name for name in self.files() if name.startswith("scaling-")))
        self.assertRegex(folder.name, r"^scaling-\d{4}-\d\d-\d\d-\d{6}-job7$")
        self.assertEqual(sorted(p.name for p in folder.iterdir()), ["scaling.csv", "scaling.html", "scaling.json"])
        study = json.loads((folder / "scaling.json").read_text())
        cases = study["cases"]
        self.assertEqual({(c["weak"], c["ranks"]) for c in cases}, {(False, 1), (False, 2), (True, 1), (True, 2)})
        self.assertTrue(all("report" in case for case in cases))
        self.assertEqual(study["runs"][0]["job"], "Slurm 7")
        study["complete"], study["cases"] = False, cases[:4]
        (folder / "scaling.json").write_text(json.dumps(study))
        result = run([ROOT / "deploy" / "slurm" / "scaling.slurm", "poisson27:n=5", "poisson27:n=5,nz={4}"], self.directory,
                     env={"PATH": path, **slurm, "SLURM_JOB_ID": "8", "FOLDER": folder})
        self.assertEqual(result.code, OK, result)
        self.assertIn(f"Going on with {folder}/scaling.json: 4 of 6 cases", result.err)
        study = json.loads((folder / "scaling.json").read_text())
        self.assertEqual([(found["job"], found["measured"]) for found in study["runs"]], [("Slurm 7", 6), ("Slurm 8", 2)])

    @unittest.skipUnless(has_matplotlib(), "matplotlib is missing")
    def test_picture(self):
        self.succeed("bench", "scaling", "poisson27:n=5", "--backend", "host", "--iterations", 2, "--plot", "s.svg", ranks=2)
        self.assertIn("<svg", self.path("s.svg").read_text())

    def test_mistakes(self):
        self.fail_on_every_rank(USAGE, "bench", "scaling", "poisson27:n=5", "--ranks", "1,4", ranks=2, says="mpirun -n 4")
        self.fail_on_every_rank(USAGE, "bench", "scaling", "poisson27:n=5", "--threads", 0, ranks=2, says="--threads")
        self.fail_on_every_rank(USAGE, "bench", "scaling", "poisson27:n={x}", ranks=2, says="nz={64}")
        self.fail_on_every_rank(USAGE, "bench", "scaling", "poisson27:n=5", "--type", "f16", "--backend", "host", ranks=2,
                                says="--rhs")
        self.fail_on_every_rank(USAGE, "bench", "scaling", "poison27:n=5", "--backend", "host", ranks=2, says="poisson27")
        self.fail_on_every_rank(USAGE, "bench", "scaling", "poisson27:n=5", "--exchange", "none", "--backend", "host", ranks=2,
                                says="exchange 'none' is for one rank")
        self.fail_on_every_rank(USAGE, "bench", "scaling", "--exchange", "hallo", "--backend", "host", ranks=2, says="halo")
        self.fail_on_every_rank(INPUT, "bench", "scaling", "none.h5", "--backend", "host", ranks=2, says="none.h5")


if __name__ == "__main__":
    unittest.main()
