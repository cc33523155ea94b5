"""The benchmarks of products and papers: what they write is there and agrees, mistakes are refused, exit codes."""

import csv
import json
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

from support import DATA, INPUT, LIMIT, PROGRAM, RESOURCES, USAGE, CliTest, environment, has_matplotlib, run, words_of

QUICK = ("--backend", "host", "--warm", "--repetitions", 3)
CLASSES = ["elasticity", "poisson27", "poisson7", "rmat", "random", "5 diagonals", "7 diagonals", "dense band",
           "sparse band"]
BENCH = pathlib.Path(PROGRAM).parent / "shardmat-bench"
PEERS = pathlib.Path(PROGRAM).parent / "shardmat-peers"
HAS_PEERS = PEERS.exists()
HAS_PETSC = HAS_PEERS and b"petsc" in PEERS.read_bytes()


class Solve(CliTest):
    def rows(self, *arguments, **options):
        """The report's rows by solver, and its notes. What our solvers answer is right."""
        report = self.json_of("bench", "solve", *arguments, "--repetitions", 1, **options)
        self.assertTrue(report["complete"])
        for row in report["table"]["rows"]:
            if row["own"]:
                self.assertTrue(row["right"], row)
            self.assertGreater(row["whole_s"], 0)
            self.assertGreaterEqual(row["iterations"], 1 if row["right"] else 0)
        return report, report["table"]["rows"], " ".join(report["table"]["notes"])

    def test_every_system_is_answered_with_each_preconditioner(self):
        report, rows, notes = self.rows("--size", "tiny", "--backend", "host", "--threads", 1, limit=300)
        own = [(row["matrix"].split(":")[0], row["preconditioner"]) for row in rows if row["own"]]
        self.assertEqual(own, [(system, name) for system in ("poisson7", "poisson27", "elasticity")
                               for name in ("multigrid", "block_jacobi")])
        self.assertEqual((report["clock"], report["ranks"], report["threads"]), ("cpu", 1, 1))
        for row in rows:
            self.assertLessEqual(row["residual"], 1e-8 if row["own"] else 1.1e-8, row)
            self.assertEqual(row["over"], None if row["own"] and row["preconditioner"] == "multigrid" else
                             "multigrid" if row["own"] else row["preconditioner"])
        if HAS_PETSC:
            for name in ("PETSc GAMG", "PETSc block Jacobi"):
                self.assertEqual(sum(row["solver"] == name for row in rows), 3)
            iterations = {(row["matrix"], row["own"]): row["iterations"] for row in rows if row["preconditioner"] == "block_jacobi"}
            for (matrix, own), count in iterations.items():
                self.assertLessEqual(abs(count - iterations[matrix, not own]), 2)
        elif not HAS_PEERS:
            self.assertIn("Without peers", notes)

    def test_ranks_are_started_for_both_sides(self):
        report, rows, notes = self.rows("elasticity:n=6,uniform,clamp=0.01", "--backend", "host", "--ranks", 2, limit=300)
        self.assertEqual((report["ranks"], report["threads"], report["clock"]), (2, 1, "wall"))
        self.assertEqual([row["own"] for row in rows[:2]], [True, True])
        if HAS_PETSC:
            gamg = next(row for row in rows if row["solver"] == "PETSc GAMG")
            self.assertTrue(gamg["right"], gamg)
            self.assertIn("2 ranks", gamg["detail"])
            self.assertIn("rigid-body modes", gamg["detail"])
        elif not HAS_PEERS:
            self.assertIn("Without peers", notes)

    def test_ranks_of_mpirun_measure_without_peers(self):
        _, [row], notes = self.rows("poisson27:n=12", "--preconditioner", "jacobi", "--backend", "host", ranks=2)
        self.assertEqual((row["rows"], row["own"], row["ratio"]), (1728, True, None))
        self.assertIn("--ranks 2", notes)
        self.fail_on_every_rank(USAGE, "bench", "solve", "poisson7:n=4", "--ranks", 2, ranks=2, says=["--ranks", "leave out mpirun"])

    def test_methods_that_peers_lack(self):
        report, [row], notes = self.rows("poisson27:n=6", "--solver", "minres", "--preconditioner", "jacobi", "--backend", "host")
        self.assertEqual((report["method"], row["own"]), ("minres", True))
        self.assertIn("cg and gmres", notes)

    def test_meshes_files_and_coordinates(self):
        _, rows, _ = self.rows(f"elasticity:mesh={DATA / 'box.h5'},clamp=0.1", "--backend", "host", "--no-peers")
        self.assertEqual(len(rows), 2)
        self.succeed("convert", "elasticity:n=5,clamp=0.01", "a.mtx")
        self.write("places.txt", "".join(f"{i} {j} {k}\n" for k in range(5) for j in range(5) for i in range(5)))
        for more, modes in (((), "constant"), (("--coordinates", "places.txt"), "rigid-body")):
            _, rows, _ = self.rows("a.mtx", *more, "--backend", "host", "--threads", 1, "--preconditioner", "multigrid")
            self.assertIn(modes, rows[0]["detail"])
            for row in rows[1:]:
                self.assertEqual("rigid-body" in row["detail"], bool(more), row)

    def test_matrices_in_another_order(self):
        self.succeed("generate", "elasticity", "--n", 5, "--clamp", 0.01, "a.h5", "--reorder", "rcm")
        _, rows, _ = self.rows("a.h5", "--backend", "host", "--threads", 1)
        for row in rows:
            self.assertTrue(row["right"], row)

    def test_iterations_that_end_early_are_shown_as_wrong(self):
        report = self.json_of("bench", "solve", "poisson7:n=6,uniform", "--backend", "host", "--no-peers", "--repetitions", 1,
                              "--preconditioner", "none", "--max-iterations", 2)
        [row] = report["table"]["rows"]
        self.assertEqual((row["right"], row["iterations"]), (False, 2))
        out = self.succeed("bench", "solve", "poisson7:n=6,uniform", "--backend", "host", "--no-peers", "--repetitions", 1,
                           "--preconditioner", "none", "--max-iterations", 2).out
        self.assertIn("WRONG", out)

    def test_mistakes(self):
        self.fail_with(USAGE, "bench", "solve", "poisson:n=4", "--solver", "cgs", says="--solver")
        self.fail_with(USAGE, "bench", "solve", "poisson:n=4", "--preconditioner", "multigird", says="multigrid")
        self.fail_with(INPUT, "bench", "solve", "none.mtx", "--backend", "host", "--no-peers", says="none.mtx", only=False)
        self.fail_with(USAGE, "bench", "solve", "poisson:n=4", "poisson:n=5", "--coordinates", "c.txt", says=["--coordinates", "one matrix"])

    @unittest.skipUnless(has_matplotlib(), "matplotlib is missing")
    def test_picture(self):
        self.succeed("bench", "solve", "poisson7:n=4,uniform", "--backend", "host", "--no-peers", "--repetitions", 1, "--plot", "s.svg")
        words = words_of(self.path("s.svg"))
        for word in ("Shardmat multigrid", "Shardmat block_jacobi", "poisson7:n=4,uniform"):
            self.assertIn(word, words)


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
            end = time.monotonic() + LIMIT
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
                temporaries = [file for file in self.files() if file.endswith(".tmp")]
                if how == signal.SIGTERM:
                    self.assertEqual(temporaries, [])
                for file in temporaries:  # nothing can remove it after SIGKILL
                    self.path(file).unlink()
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
        words = words_of(self.path("spmm.svg"))
        self.assertIn("right-hand sides", words)
        self.assertIn("poisson7:n=4 f64", words)
        self.assertTrue(any("with one right-hand side each" in word for word in words), words)
        self.assertFalse(any("cuSPARSE" in word for word in words), "there is none on the host")


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
        self.fail_with(USAGE, "bench", "features", "--in", "3,8", "--out", 5, *self.HOST, says=["2 numbers of input", "1 of output", "--out"])
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


class Program(CliTest):
    """shardmat bench becomes shardmat-bench."""

    def test_is_missing(self):
        shutil.copy2(PROGRAM, self.directory)
        for words in (["bench", "kernels"], ["bench", "--help"], ["help", "bench", "kernels"]):
            result = run([self.path("shardmat"), *words], self.directory)
            self.assertEqual((result.code, len(result.messages)), (RESOURCES, 1), result)
            self.assertIn("cmake --build build --target shardmat-bench", result.messages[0])
        self.assertIn("bench", run([self.path("shardmat"), "--help"], self.directory).out)

    def test_by_its_own_name(self):
        for words in ([], ["--help"], ["kernels", "--help"], ["kernls"], ["kernels", "--backend", "gpu"]):
            own, usual = (run([*start, *words], self.directory) for start in ([BENCH], [PROGRAM, "bench"]))
            self.assertEqual((own.code, own.out, own.messages), (usual.code, usual.out, usual.messages), words)

    def test_errors_name_the_whole_command(self):
        self.fail_with(USAGE, "bench", "kernls", says=["did you mean kernels?", "see: shardmat bench --help"])
        self.fail_with(USAGE, "bench", "kernels", "--type", "f32,", says=["empty item", "see: shardmat bench kernels --help"])


if __name__ == "__main__":
    unittest.main()
