"""The scripts that draw reports: on made-up ones, and in more than one Python."""

import json
import os
import re
import subprocess
import sys
import unittest

from support import OK, ROOT, USAGE, CliTest, has_matplotlib, run, words_of


class Pictures(CliTest):
    """The scripts that draw reports, on made-up ones, and the Python they run in."""

    MACHINE = {"processor": "GPU", "software": "shardmat"}

    def draw(self, script, report, python=sys.executable, **more):
        self.write("r.json", json.dumps(report))
        return run([python, ROOT / "tools" / "plots" / script, "r.json", "--output", "r.svg"], self.directory, **more)

    def kernels(self, ratio, min_s=1):
        times = {"median_s": 1, "min_s": min_s}
        return {"matrix": {"name": f"m{ratio}"}, "type": "f64", "yardstick": {"kernel": "csr_cusparse", "ratio": 1, **times},
                "best_own": {"kernel": "packed", "ratio": ratio, **times}, "auto": {"kernel": "sell", "ratio": ratio / 2, **times}}

    @unittest.skipUnless(has_matplotlib(), "matplotlib is missing")
    def test_kernels_mark_unsteady_times(self):
        report = {"complete": True, "machine": self.MACHINE, "yardstick": "best cuSPARSE",
                  "cases": [self.kernels(0.1), self.kernels(2)]}
        result = self.draw("plot_kernels.py", report)
        self.assertEqual(result.code, OK, result)
        words = words_of(self.path("r.svg"))
        self.assertEqual(words.count("packed"), 2)
        self.assertFalse(any(word.startswith(("unsteady", "packed (", "(not complete")) for word in words), words)
        report["cases"].append(self.kernels(90, min_s=0.4))
        report["complete"] = False
        self.assertEqual(self.draw("plot_kernels.py", report).code, OK)
        words = words_of(self.path("r.svg"))
        for word in ("unsteady times", "packed (90, cut)"):
            self.assertIn(word, words)
        self.assertTrue(any("(not complete: the benchmark did not end)" in word for word in words), words)

    @unittest.skipUnless(has_matplotlib(), "matplotlib is missing")
    def test_short_axes_of_papers_have_two_numbers(self):
        for times in ((70, 330), (210, 480), (310, 390), (41.5, 43), (3, 7000)):
            with self.subTest(times=times):
                rows = [{"matrix": "m", "type": "f64", "format": form, "bytes": 1e6 * us, "us": us}
                        for form, us in zip(("csr", "ell"), times)]
                report = {"machine": self.MACHINE, "tables": {"paper_5_formats": {"rows": rows}}}
                self.assertEqual(self.draw("plot_papers.py", report).code, OK)
                panels = re.findall(r'id="axes_\d+">.*?id="legend_', self.path("r.svg").read_text(), re.DOTALL)
                self.assertEqual(len(panels), 2)
                for panel in panels:
                    numbers = re.findall(r"<!-- [\d.]+ -->", panel[panel.index('id="ytick_'):])
                    self.assertGreaterEqual(len(numbers), 2, panel)

    @unittest.skipUnless(has_matplotlib(), "matplotlib is missing")
    def test_spmm_is_over_cusparse_where_there_is_one(self):
        result = {"kernel": "packed", "median_s": 1, "min_s": 0.4, "wrong_entries": 0}
        case = {"matrix": {"name": "m"}, "type": "bf16", "order": "row", "rhs": 8, "spmv_s": 1, "results": [], "auto": result,
                "speed_up": 3}
        self.assertEqual(self.draw("plot_spmm.py", {"machine": self.MACHINE, "cases": [case]}).code, OK)
        words = words_of(self.path("r.svg"))
        for word in ("speed-up over the fastest cuSPARSE algorithm", "unsteady times", "m bf16"):
            self.assertIn(word, words)

    @unittest.skipUnless(has_matplotlib(), "matplotlib is missing")
    def test_answers_are_lines_with_names(self):
        def row(solver, own, seconds, right=True):
            return {"matrix": "poisson7:n=30,uniform", "rows": 27000, "nnz": 183600, "solver": solver, "own": own, "whole_s": seconds[-1],
                    "right": right, "history": {"seconds": seconds, "residual": [1, 20, 1e-9]}}
        rows = [row("Shardmat multigrid", True, [1, 1.5, 2]), row("PETSc GAMG", False, [3, 4, 5], False),
                row("loop", False, [1, 2, 3]) | {"history": None}]
        report = {"machine": self.MACHINE, "clock": "wall", "method": "cg", "rtol": 1e-8, "ranks": 2, "threads": 1, "table": {"rows": rows}}
        self.assertEqual(self.draw("plot_answers.py", report).code, OK)
        words = words_of(self.path("r.svg"))
        for word in ("Shardmat 2.00 s", "PETSc GAMG 5.00 s WRONG", "27,000 unknowns, 183,600 nonzeros", "poisson7: n=30, uniform"):
            self.assertIn(word, words)
        self.assertNotIn("loop", words)
        titles = [sys.executable, ROOT / "tools" / "plots" / "plot_answers.py", "r.json", "--output", "r.svg", "--titles"]
        self.assertEqual(run([*titles, "Poisson"], self.directory).code, OK)
        self.assertIn("Poisson", words_of(self.path("r.svg")))
        refused = run([*titles, "Poisson", "beam"], self.directory)
        self.assertNotEqual(refused.code, OK)
        self.assertIn("it has 1 systems; give as many titles, not 2", refused.err)
        self.assertNotEqual(self.draw("plot_answers.py", report | {"table": {"rows": rows[2:]}}).code, OK)

    def test_reports_of_other_commands_are_refused(self):
        commands = {"plot_answers": "bench solve", "plot_batched": "bench batched", "plot_convergence": "solve", "plot_kernels": "bench kernels",
                    "plot_matrix": "info", "plot_papers": "bench papers", "plot_peers": "bench kernels|spmm|batched --peers",
                    "plot_reports": "multiply", "plot_scaling": "bench scaling", "plot_service": "bench service", "plot_solve": "bench solve",
                    "plot_spmm": "bench spmm", "scaling_html": "bench scaling", "papers_html": "bench papers",
                    "compare_html": "compare"}
        scripts = [*(ROOT / "tools" / "plots").glob("plot_*.py"), *(ROOT / "tools" / "plots").glob("*_html.py")]
        self.assertEqual(set(commands), {path.stem for path in scripts} - {"plot_surface"})  # which draws a .vtu
        pagerank = {"matrix": {"name": "m"}, "columns": [], "iterations": 3}
        features = {"machine": self.MACHINE, "cases": [{"matrix": {"name": "m"}}]}
        for script, command in commands.items():
            for report in ({}, [], [{}], 3, pagerank, features, {"machine": self.MACHINE, "yardstick": "y", "cases": 3}):
                with self.subTest(script=script, report=report):
                    result = self.draw(f"{script}.py", report)
                    self.assertEqual((result.code, len(result.err.splitlines())), (USAGE, 1), result)
                    verb = "writes" if script.endswith("html") else "draws"
                    for words in (f"{script}.py: r.json is not a report of shardmat {command}: ", f"This script {verb} ",
                                  f"Write one with: shardmat {command} … --json FILE"):
                        self.assertIn(words, result.err)
        self.write("r.json", "{")
        result = run([sys.executable, ROOT / "tools" / "plots" / "plot_solve.py", "r.json", "--output", "r.svg"], self.directory)
        self.assertEqual(result.code, USAGE, result)
        self.assertIn("it is not JSON", result.err)

    def other_python(self):
        """A python3 without any packages, as of a virtual environment."""
        self.path("venv/bin").mkdir(parents=True)
        self.path("venv/bin/python3").symlink_to("/usr/bin/python3")
        self.write("venv/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n")
        return self.path("venv/bin/python3")

    @unittest.skipIf(subprocess.run(["/usr/bin/python3", "-c", "import matplotlib"], capture_output=True).returncode,
                     "the system's Python has no matplotlib")
    def test_the_interpreter_that_has_matplotlib(self):
        python = self.other_python()
        path = os.pathsep.join([str(python.parent), os.environ["PATH"]])
        report = {"machine": self.MACHINE, "yardstick": "best cuSPARSE", "cases": [self.kernels(2)]}
        result = self.draw("plot_kernels.py", report, python, env={"PATH": path})
        self.assertEqual((result.code, result.err), (OK, ""), result)
        self.assertIn("<svg", self.path("r.svg").read_text())

    def test_interpreters_without_matplotlib_are_named(self):
        python = self.other_python()
        self.write("matplotlib.py", "raise ImportError")
        report = {"machine": self.MACHINE, "yardstick": "best cuSPARSE", "cases": [self.kernels(2)]}
        result = self.draw("plot_kernels.py", report, python, env={"PYTHONPATH": str(self.directory)})
        self.assertNotEqual(result.code, OK, result)
        for word in ("matplotlib is missing in", str(python), "/usr/bin/python3", "apt-get install python3-matplotlib"):
            self.assertIn(word, result.err)
        self.assertEqual(len(result.err.splitlines()), 1, result)


if __name__ == "__main__":
    unittest.main()
