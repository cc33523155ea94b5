"""Every scenario of `bench service`, small: bits, statuses and counts; times are for people to judge."""

import json
import unittest

from support import USAGE, CliTest, has_matplotlib
from test_schemas import faults, load as load_schema

ALWAYS_RIGHT = {"overhead", "rate", "bodies", "merged", "stream", "solves", "latency", "drain", "idle", "bits", "leaks", "chaos"}


class BenchService(CliTest):
    def measure(self, *arguments):
        report = self.json_of("bench", "service", "--size", "small", *arguments, limit=1400)
        schema = load_schema("bench-service")
        self.assertEqual(faults(report, schema, schema)[:10], [])
        self.assertIs(report["complete"], True)
        return {one["scenario"]: one for one in report["scenarios"]}

    def figure(self, scenario, what):
        return next(one for one in scenario["figures"] if one["what"] == what)

    def answers(self, scenario):
        return {one["status"]: one["count"] for one in scenario["answers"]}

    def test_every_scenario(self):
        all_of_them = self.measure()
        self.assertEqual(list(all_of_them), ["overhead", "rate", "bodies", "merged", "stream", "solves", "latency", "overload", "kill", "stop", "drain",
                                             "idle", "bits", "leaks", "chaos"])
        for name, scenario in all_of_them.items():
            with self.subTest(name):
                self.assertEqual(scenario["wrong"], 0, scenario)
                self.assertGreater(self.answers(scenario).get(204 if name == "stream" else 200, 0), 0, scenario)
                if name in ALWAYS_RIGHT:  # products of vectors that stay and of own memory have no body
                    expected = {"merged": {200, 204}, "overhead": {200, 204}, "stream": {204}}.get(name, {200})
                    self.assertEqual(set(self.answers(scenario)), expected, scenario)
        self.assertEqual(set(self.answers(all_of_them["overload"])), {200, 429})  # 96 solves at once are too many
        self.assertGreater(self.figure(all_of_them["overload"], "solves of 96 clients, answered")["value"], 0)
        self.assertGreater(self.figure(all_of_them["overload"], "solves of 96 clients, refused (429)")["value"], 0)
        self.assertGreater(self.figure(all_of_them["drain"], "clients that were answered after the service was told to end")["value"], 0)
        for name in ("kill", "stop"):
            self.assertEqual(set(self.answers(all_of_them[name])), {200, 503}, all_of_them[name])
        self.assertEqual(self.figure(all_of_them["kill"], "ranks killed")["value"], 2)
        bits = all_of_them["bits"]
        self.assertEqual(self.answers(bits), {200: 500})
        self.assertEqual(self.figure(bits, "answers with other bits than the library's product")["value"], 0)
        self.figure(bits, "answers of merged products")  # how many depends on how fast the clients are; may be none
        leaks = all_of_them["leaks"]
        self.assertEqual(self.answers(leaks), {200: 11 * (1_000 + 100)})
        self.assertEqual(self.figure(leaks, "descriptors")["value"], 0)
        curves = all_of_them["merged"]["curves"]
        self.assertEqual([(curve["vectors"], curve["merging"], [p["clients"] for p in curve["points"]]) for curve in curves],
                         [(vectors, merging, [1, 32]) for vectors in ("resident", "sent") for merging in (True, False)])
        for curve in curves:
            columns = curve["points"][-1]["median_columns"]
            self.assertEqual(columns > 1, curve["merging"], curve)

        solves = all_of_them["solves"]
        self.assertEqual([(curve["requests"], curve["vectors"], curve["merging"], [p["clients"] for p in curve["points"]]) for curve in solves["curves"]],
                         [("solves", "sent", merging, [1, 8]) for merging in (True, False)])
        merged, alone = ([p["median_columns"] for p in curve["points"]] for curve in solves["curves"])
        self.assertEqual((merged[0], alone), (1, [1, 1]), solves)
        self.assertEqual(self.figure(solves, "8 clients: solves merged to one, median")["value"], merged[1])
        for what in ("one solve alone, median", "8 clients, merged", "8 clients, not merged", "a product alone, median",
                     "a product while another client solves, median", "a product while another client solves, 99 %",
                     "the median of these over two products alone"):
            self.assertGreater(self.figure(solves, what)["value"], 0, what)

    @unittest.skipUnless(has_matplotlib(), "matplotlib is missing")
    def test_text_picture_and_a_matrix_of_the_user(self):
        self.succeed("generate", "poisson7", "--n", 12, "a.h5")
        out = self.succeed("bench", "service", "a.h5", "--scenario", "merged", "--size", "small", "--ranks", 2, "--json", "r.json",
                           "--plot", "r.svg").out
        for word in ("target", "a.h5: 32 clients, merged", "cores of other programs", "Load averages"):
            self.assertIn(word, out)
        self.assertIn("products a second", self.path("r.svg").read_text())
        self.assertEqual([s["scenario"] for s in json.loads(self.path("r.json").read_text())["scenarios"]], ["merged"])
        self.succeed("bench", "service", "--scenario", "solves", "--size", "small", "--json", "s.json", "--plot", "s.svg")
        self.assertIn("solves a second", self.path("s.svg").read_text())
        self.assertEqual({c["requests"] for s in json.loads(self.path("s.json").read_text())["scenarios"] for c in s["curves"]}, {"solves"})

    def test_mistakes(self):
        self.fail_with(USAGE, "bench", "service", "--scenario", "overlaod", says=["--scenario", "overload"])
        self.fail_with(USAGE, "bench", "service", "--size", "huge", says="--size")
        self.fail_with(USAGE, "bench", "service", "elasticty:n=4", "--scenario", "merged", "--size", "small", says="elasticity")


if __name__ == "__main__":
    unittest.main()
