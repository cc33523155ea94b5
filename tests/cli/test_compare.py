"""compare: what became slower between two reports, and what it refuses."""

import json
import unittest

from support import INPUT, USAGE, CliTest, has_matplotlib

SLOWER = 8


class Compare(CliTest):
    def study(self, name, slower=1.0):
        """A study of its own form, whose times are made up: steady ones, and `slower` times as long on two ranks."""
        self.succeed("bench", "scaling", "poisson27:n=5", "--exchange", "auto", "--solve", "--no-forecast", "--iterations", 20, "--backend",
                     "host", "--json", name, ranks=2)
        study = json.loads(self.path(name).read_text())
        for case in study["cases"]:
            factor = slower if case["ranks"] == 2 else 1
            case["samples_s"] = [1e-6 * factor * (100 + i % 5) for i in range(20)]
            case["report"]["iteration"] |= {"median_s": 102e-6 * factor, "min_s": 100e-6 * factor, "max_s": 104e-6 * factor}
        for case in study["solves"]:
            case["samples"] = {"set_up_s": [0.1, 0.1, 0.1], "solve_s": [0.2, 0.21, 0.2]}
        self.path(name).write_text(json.dumps(study))

    def test_studies(self):
        self.study("a.json")
        self.study("b.json", slower=1.2)
        found = json.loads(self.succeed("compare", "a.json", "b.json", "--json").out)
        times = {(entry["of"], entry["what"]): entry for entry in found["times"]}
        self.assertEqual(len(times), 2 + 2 * 3)
        slow = times["poisson27:n=5, 2 ranks", "product, exchange auto"]
        self.assertEqual((slow["verdict"], slow["interval"], slow["now"]["times"]), ("slower", "bootstrap", 20))
        self.assertAlmostEqual(slow["ratio"], 1.2, places=9)
        self.assertTrue(1.15 < slow["ratio_low"] <= slow["ratio"] <= slow["ratio_high"] < 1.25)
        self.assertEqual({entry["verdict"] for entry in times.values() if entry is not slow}, {"same"})
        out = self.succeed("compare", "a.json", "b.json").out
        for word in ("poisson27:n=5, 2 ranks", "+20.0 %", "slower", "8 times: 1 slower, 7 same (not shown: the same)"):
            self.assertIn(word, out)
        self.assertIn("preconditioner auto", self.succeed("compare", "a.json", "b.json", "--all").out)
        self.assertIn("faster", self.succeed("compare", "b.json", "a.json").out)

    def test_the_exit_code_says_whether_more_than_allowed_became_slower(self):
        self.study("a.json")
        self.study("b.json", slower=1.2)
        self.succeed("compare", "a.json", "b.json", "--fail-above", "25%")
        self.succeed("compare", "b.json", "a.json", "--fail-above", "0")
        for share in ("5%", "5 %", "0.05"):
            result = self.call("compare", "a.json", "b.json", "--fail-above", share, "--json", "c.json")
            self.assertEqual(result.code, SLOWER, result)
            self.assertIn("1 time became slower by more than 5 %, most of all poisson27:n=5, 2 ranks: product, exchange auto, by 20.0 %",
                          result.messages[0])
            found = json.loads(self.path("c.json").read_text())
            self.assertEqual((found["fail_above"], found["slower_than_allowed"]), (0.05, 1))
        for share in ("x", "-5%", "5%%", "nan"):
            self.fail_with(USAGE, "compare", "a.json", "b.json", f"--fail-above={share}", says="--fail-above")

    def test_kernels_solves_and_products(self):
        quick = ("--backend", "host", "--warm", "--type", "f64", "--kernel", "csr_host,ell_host", "--repetitions", 5)
        for name in ("a", "b"):
            self.succeed("bench", "kernels", "poisson7:n=6", *quick, "--json", f"k{name}.json")
            self.succeed("solve", "poisson7:n=6", "--backend", "host", "--json", f"s{name}.json")
            self.succeed("multiply", "poisson7:n=6", "--backend", "host", "--iterations", 9, "--json", f"m{name}.json")
            self.succeed("bench", "solve", "poisson7:n=6", "--no-peers", "--repetitions", 3, "--backend", "host", "--json", f"b{name}.json")
        for kind, command, interval in (("k", "bench kernels", "range"), ("s", "solve", "none"), ("m", "multiply", "range"),
                                        ("b", "bench solve", "bootstrap")):
            found = json.loads(self.succeed("compare", f"{kind}a.json", f"{kind}b.json", "--json").out)
            self.assertEqual(found["kind"], command)
            self.assertGreaterEqual(len(found["times"]), 2)
            self.assertLessEqual({entry["interval"] for entry in found["times"]}, {interval, "none"})
            self.assertIn(interval, {entry["interval"] for entry in found["times"]})
        self.succeed("solve", "poisson7:n=6", "--backend", "host", "--rtol", "1e-6", "--json", "loose.json")
        found = json.loads(self.succeed("compare", "sa.json", "loose.json", "--json").out)
        self.assertEqual(len(found["doubts"]), 1)
        self.assertIn("rtol 1e-08, not 1e-06", found["doubts"][0])
        self.fail_with(INPUT, "compare", "ka.json", "sb.json", says=["shardmat bench kernels", "shardmat solve"])
        self.succeed("solve", "poisson7:n=7", "--backend", "host", "--json", "other.json")
        self.fail_with(INPUT, "compare", "sa.json", "other.json", says="nothing in common")
        self.succeed("info", "poisson7:n=7", "--json", "info.json")
        self.fail_with(INPUT, "compare", "sa.json", "info.json", says=["info.json is no report that can be compared", "bench scaling"])
        self.fail_with(INPUT, "compare", "none.json", "sa.json", says="none.json")
        broken = json.loads(self.path("sa.json").read_text())
        broken.pop("seconds")
        self.path("broken.json").write_text(json.dumps(broken))
        self.fail_with(INPUT, "compare", "sa.json", "broken.json", says="broken.json is not what this version's shardmat solve writes")
        self.fail_with(USAGE, "compare", "sa.json", "sb.json", "--json", "sa.json", says="the first report")

    def test_iterations_that_were_timed_together_are_one_time(self):
        """As on GPUs: 200 iterations in eights are 25 times, too few to call 0.5 % a difference where they vary by 6 %."""
        self.succeed("multiply", "poisson7:n=6", "--backend", "host", "--iterations", 9, "--json", "m.json")
        report = json.loads(self.path("m.json").read_text())
        for together, verdict, times in ((8, "same", 25), (1, "slower", 200)):
            for name, factor in (("a", 1), ("b", 1.005)):
                report["iteration"] |= {"iterations": 200, "means_of": together, "median_s": 1e-4 * factor, "min_s": 0.97e-4 * factor,
                                        "max_s": 1.03e-4 * factor}
                self.path(f"{name}.json").write_text(json.dumps(report))
            found = json.loads(self.succeed("compare", "a.json", "b.json", "--json").out)
            entry = next(entry for entry in found["times"] if entry["what"] == "iteration")
            self.assertEqual((entry["interval"], entry["verdict"], entry["now"]["times"]), ("range", verdict, times))

    @unittest.skipUnless(has_matplotlib(), "matplotlib is missing")
    def test_a_page(self):
        self.study("a.json")
        self.study("b.json", slower=1.2)
        self.succeed("compare", "a.json", "b.json", "--html", "c.html")
        text = self.path("c.html").read_text()
        for word in ("What became slower: bench scaling", "poisson27:n=5, 2 ranks", "+20.0\u00a0%", 'class="slower"', "bootstrap"):
            self.assertIn(word, text)
        self.assertNotRegex(text, r"https?:|@import|url\((?!#)")


if __name__ == "__main__":
    unittest.main()
