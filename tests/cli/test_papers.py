"""`bench papers`: every table as text, JSON and HTML; figures of locality, Fold, row block packing and NT against the papers'
definitions, written again in papers_reference.py."""

import copy
import json
import os
import re
import unittest

import numpy as np
import scipy.io
import scipy.sparse as sp

import papers_reference as reference
from papers_summaries import Summaries
from support import OK, USAGE, CliTest, has_matplotlib

QUICK = ("--backend", "host", "--warm", "--repetitions", 3)


def uneven(rows=400, seed=5):
    """A symmetric matrix with runs, single entries, empty rows and a long row."""
    random = np.random.default_rng(seed)
    pattern = sp.random(rows, rows, 0.01, random_state=random, format="lil")
    for start in range(0, rows - 8, 13):
        pattern[start, start:start + random.integers(2, 8)] = 1
    pattern[7, ::3] = 2
    pattern[100:110, :] = 0
    matrix = sp.csr_matrix(pattern + pattern.T)
    matrix.sort_indices()
    matrix.eliminate_zeros()
    return matrix


class Definitions(CliTest):
    """One run over one matrix, and the papers' definitions of the same."""

    def setUp(self):
        super().setUp()
        self.matrix = uneven()
        scipy.io.mmwrite(self.path("uneven.mtx"), self.matrix, symmetry="general", precision=17)

    def tables(self, *arguments):
        return self.json_of("bench", "papers", "uneven.mtx", "--gmres-iterations", 0, *arguments, *QUICK)["tables"]

    def test_locality_fold_and_cache(self):
        matrix = self.matrix
        for width in (0, 5):
            rows = self.tables("--paper", 4, "--fold-width", width)["paper_4"]["rows"]
            self.assertEqual([row["type"] for row in rows], ["f32", "f64"])
            for row in rows:
                bits, value = (5, 4) if row["type"] == "f32" else (4, 8)
                used = width or reference.usual_width(matrix)
                self.assertEqual(row["width"], used)
                order = reference.rows_by_length(matrix)
                expected = {"locality": reference.mean_count(matrix.indices, bits),
                            "locality_sorted": reference.mean_count(matrix[order].indices, bits),
                            "locality_fold": reference.mean_count(reference.folded(matrix, used, False), bits),
                            "locality_padded": reference.mean_count(reference.folded(matrix, used, True), bits)}
                for key, one in expected.items():
                    self.assertAlmostEqual(row[key], one, places=12, msg=key)
                self.assertEqual(row["advised"], reference.advised(*list(expected.values())[:3]))
                crs, fold = reference.l1_hit_rates(matrix, value, used)
                self.assertAlmostEqual(row["l1_crs"], crs, places=12)
                self.assertAlmostEqual(row["l1_fold"], fold, places=12)
                self.assertAlmostEqual(row["l1_sorted"], reference.l1_hit_rates(matrix[order], value, used)[0], places=12)
                times = {name: row[key] for name, key in (("CRS", "crs_us"), ("sorted CRS", "sorted_us"), ("Fold", "fold_us"))}
                self.assertEqual(row["fastest"], min(times, key=times.get))

    def test_padding_of_fold(self):
        matrix = self.matrix
        by_length = matrix[reference.rows_by_length(matrix)]
        longest = int(np.diff(matrix.indptr).max())
        tables = self.tables("--paper", "003", "--fold-width", "longest", "--fold-sorted", "--l1", "48KiB", "--sms", 14)
        self.assertIn("48 KiB", " ".join(tables["paper_4"]["notes"]))
        for row in tables["paper_4_padding"]["rows"]:
            bits, mean = 5 if row["type"] == "f32" else 4, reference.usual_width(matrix)
            self.assertEqual((row["mean_width"], row["longest_width"]), (mean, longest))
            for key, rows, width, padded in (("without", matrix, mean, False), ("mean_stored", matrix, mean, True),
                                             ("mean_sorted", by_length, mean, True), ("longest_stored", matrix, longest, True),
                                             ("longest_sorted", by_length, longest, True)):
                wanted = reference.mean_count(reference.folded(rows, width, padded), bits)
                if key.startswith("longest") and longest * matrix.shape[0] > 64 * matrix.nnz:
                    wanted = None
                if wanted is None:
                    self.assertIsNone(row[key])
                else:
                    self.assertAlmostEqual(row[key], wanted, places=12, msg=key)
        for row in tables["paper_4"]["rows"]:
            bits, value = (5, 4) if row["type"] == "f32" else (4, 8)
            self.assertEqual(row["width"], longest)
            self.assertAlmostEqual(row["locality_fold"], reference.mean_count(reference.folded(by_length, longest, False), bits), places=12)

    def test_published_matrices_and_triangles(self):
        path = self.path("F1.mtx")
        scipy.io.mmwrite(path, self.matrix, symmetry="general", precision=17)
        both = {}
        for options in ((), ("--stored-triangle",)):
            tables = self.json_of("bench", "papers", path, "--paper", "003", "--type", "f32", *options, *QUICK)["tables"]
            (row,) = tables["paper_4_published"]["rows"]
            both[bool(options)] = row["nnz"]
            self.assertIn("lower triangles" if options else "whole matrices", tables["paper_4"]["title"])
            self.assertEqual((row["paper_nnz"], row["paper_rows"], row["paper_hit_rate"], row["paper_gflops"]),
                             (13590452, 343791, 0.24, 9.41))
        self.assertEqual(both, {False: self.matrix.nnz, True: sp.tril(self.matrix).nnz})
        self.assertNotIn("paper_4_published", self.tables("--paper", 4))

    def test_packing(self):
        for options, matrix in (((), self.matrix), (("--stored-triangle",), sp.tril(self.matrix, format="csr"))):
            matrix.sort_indices()
            tables = self.tables("--paper", 5, *options)
            (row,) = tables["paper_5"]["rows"]
            expected = reference.runs(matrix)
            self.assertEqual(row["n_z"], self.matrix.nnz)
            for key, value in expected.items():
                self.assertEqual(row[key], value, key)
            sizes = reference.bytes_of(expected)
            self.assertEqual(row["condition_7"], sizes["rbp_csr"] < sizes["csr"])
            self.assertEqual(row["condition_8"], sizes["rbp_ell"] < sizes["ell"])
            self.assertIn("lower triangles" if options else "whole matrices", tables["paper_5"]["title"])
            by_place = {(row["type"], row["format"]): row for row in tables["paper_5_formats"]["rows"]}
            for (kind, name), row in by_place.items():
                sizes = reference.bytes_of(expected, 4 if kind == "f32" else 8)
                if name != "bcsr":
                    self.assertEqual(row["bytes"], sizes[name], name)
                if name in ("bcsr", "bcrs"):
                    self.assertAlmostEqual(row["memory"], row["bytes"] / sizes["csr"] - 1, places=12)
                if name.startswith("rbp"):
                    usual = by_place[kind, name[4:]]
                    self.assertAlmostEqual(row["memory"], sizes[name] / sizes[name[4:]] - 1, places=12)
                    if row["us"] and usual["us"]:
                        self.assertAlmostEqual(row["speed_up"], usual["us"] / row["us"], places=9)
            for mean in tables["paper_5_means"]["rows"]:
                row = by_place[mean["type"], mean["format"]]
                self.assertAlmostEqual(mean["mean_memory"], row["memory"])
                self.assertEqual(mean["refused"], int(row["speed_up"] is None))
                self.assertEqual(mean["paper_mean_memory"] is None, mean["type"] == "f32")

    def test_threads_a_row(self):
        tables = self.tables("--paper", 3)
        for row in tables["paper_3"]["rows"]:
            self.assertEqual(row["formula"], reference.threads_by_formula(self.matrix))
        for row in tables["paper_3_threads"]["rows"]:
            times = {n: row[f"us_{n}"] for n in (1, 2, 4, 8, 16, 32)}
            self.assertEqual(row["best"], min(times, key=times.get))

    def test_info_tells_the_same(self):
        data = self.json_of("info", "uneven.mtx", "--fold-width", 5, "--bandwidth", 10)
        expected = reference.runs(self.matrix)
        for key, value in data["row_block_packing"].items():
            if key not in ("n_z", "rbp_csr_saves", "rbp_ell_saves"):
                self.assertEqual(value, expected[key], key)
        fold = data["locality"]["f32"]["folded"]
        self.assertEqual(fold["width"], 5)
        self.assertAlmostEqual(fold["padded"], reference.mean_count(reference.folded(self.matrix, 5, True), 5), places=12)
        out = self.succeed("info", "uneven.mtx", "--bandwidth", 10).out
        for word in ("Row block packing", "condition 7", "advised: ", "with padding"):
            self.assertIn(word, out)


class Reports(CliTest):
    def test_every_table_as_text_json_and_page(self):
        matrices = ["poisson27:n=4", "rmat:scale=6"]
        page = ("--html", "p.html", "--plot", "p.svg") if has_matplotlib() else ()
        text = self.succeed("bench", "papers", *matrices, "--type", "f64", *QUICK, "--json", "p.json", *page).out
        report = json.loads(self.path("p.json").read_text())
        self.assertIs(report["complete"], True)
        self.assertEqual(report["wrong"], [])
        names = ["matrices", "paper_1", "paper_1_ratios", "paper_1_sm", "paper_2", "paper_3", "paper_3_threads", "paper_4",
                 "paper_4_padding", "paper_4_rows", "paper_4_groups", "paper_4_advice", "paper_5", "paper_5_formats",
                 "paper_5_means", "paper_5_published", "paper_5_gmres", "paper_5_gmres_means"]
        self.assertEqual(list(report["tables"]), names)
        Summaries(self).check(report["tables"])
        for name, table in report["tables"].items():
            self.assertIn(table["title"], text, name)
            self.assertTrue(table["rows"], name)
            self.assertEqual(len(report["printed"][name]["rows"]), len(table["rows"]))
            for row in table["rows"]:
                self.assertTrue({"matrix", "figure", "kernel", "type", "format"} & set(row))
        self.assertEqual({row["source"] for row in report["tables"]["paper_4"]["rows"]}, set(matrices))
        gmres, formats = report["tables"]["paper_5_gmres"]["rows"], "csr rbp_csr ell rbp_ell ell_r rbp_ell_r".split()
        self.assertEqual([(row["matrix"], row["format"]) for row in gmres], [(m, f) for m in matrices for f in formats])
        for row in gmres[:6]:
            self.assertEqual((row["reason"], row["iterations"]), ("converged_rtol", gmres[0]["iterations"]))
            self.assertEqual(row["gain"] is None, not row["format"].startswith("rbp"))
            self.assertLessEqual(row["residual"], 1e-8)
        for row in report["tables"]["paper_1_sm"]["rows"]:
            self.assertTrue(0.3 < row["model_p100"] <= 1, row)
        if page:
            html = self.path("p.html").read_text()
            for name, table in report["tables"].items():
                self.assertIn(table["title"].split(":")[0], html, name)
            self.assertEqual(html.count("<figcaption>"), html.count("<svg"))
            self.assertIn(' text-anchor="middle"', html)
            self.assertNotIn(" style=", "".join(re.findall(r"<svg.*?</svg>", html, re.DOTALL)))
            inside = html.split('id="shardmat-report">')[1].split("</script>")[0]
            self.assertEqual(json.loads(inside)["tables"], report["tables"])
            self.assertIn("1.50×, 1.65×, 1.51×", self.path("p.svg").read_text())

    def test_settings_of_gmres(self):
        def solved(*options):
            report = self.json_of("bench", "papers", "poisson7:n=8", "--paper", 5, "--type", "f64", *QUICK, *options)
            Summaries(self).check(report["tables"])
            table = report["tables"]["paper_5_gmres"]
            return table["rows"][0], " ".join(table["notes"])
        usual, _ = solved()
        loose, notes = solved("--gmres-tolerance", "1e-3", "--gmres-restart", 5)
        self.assertLess(loose["iterations"], usual["iterations"])
        self.assertTrue(1e-8 < loose["residual"] <= 1e-3)
        self.assertIn("restart 5.", notes)
        self.assertIn("0.001 of b", notes)
        often, _ = solved("--gmres-restart", 2)
        self.assertGreater(often["iterations"], usual["iterations"])
        self.fail_with(USAGE, "bench", "papers", "--gmres-restart", 0, says="--gmres-restart")

    def test_the_settings_of_each_paper(self):
        report = self.json_of("bench", "papers", "--size", "tiny", "--paper", "2,4", "--type", "f32", *QUICK)
        classes = report["tables"]["paper_2"]["rows"]
        self.assertEqual({row["matrix"]: row["advised"] for row in classes},
                         {"random": "ell", "uneven rows": "hyb", "very sparse": "coo", "triangular": "jds", "banded": "ell",
                          "diagonal": "dia", "blocks": "bcsr", "stencil": "–"})
        ours = {row["matrix"]: row["ours"] for row in classes}
        self.assertEqual([ours[name] for name in ("random", "uneven rows", "very sparse", "banded", "diagonal", "blocks")],
                         ["ell", "hyb", "coo", "ell", "dia", "bcsr"])
        self.assertEqual(len(report["tables"]["paper_4"]["rows"]), 8)
        by_locality, with_size = report["tables"]["paper_4_advice"]["rows"]
        self.assertEqual((by_locality["matrices"], with_size["matrices"]), (8, 8))
        Summaries(self).check(report["tables"])
        # Each figure of a summary is one that this check forms again.
        for name in ("paper_4_rows", "paper_4_groups", "paper_4_advice"):
            for at, row in enumerate(report["tables"][name]["rows"]):
                for key in (key for key, value in row.items() if isinstance(value, (int, float)) and value):
                    wrong = copy.deepcopy(report["tables"])
                    wrong[name]["rows"][at][key] *= 1.37
                    with self.assertRaises(AssertionError, msg=(name, key)):
                        Summaries(self).check(wrong)

    def test_a_dense_row(self):
        row = self.json_of("bench", "papers", "random:n=1,cols=3200,row_nnz=3200", "--paper", 4, "--type", "f32", *QUICK)
        row = row["tables"]["paper_4"]["rows"][0]
        self.assertEqual(row["locality"], 32)
        self.assertAlmostEqual(row["one_line_hit_rate"], 31 / 32)
        self.assertAlmostEqual(row["l1_crs_x"], 31 / 32)

    def test_refused_cells_are_shown(self):
        columns = np.r_[np.arange(60000), np.arange(60000)]
        rows = np.r_[np.arange(60000), np.zeros(60000, int)]
        scipy.io.mmwrite(self.path("arrow.mtx"), sp.coo_matrix((np.ones(120000), (rows, columns))).tocsr())
        out = self.succeed("bench", "papers", "arrow.mtx", "--paper", 5, "--type", "f64", "--gmres-iterations", 0, *QUICK).out
        self.assertRegex(out, r"(?m)^  arrow.mtx .* ell .*refused")
        self.assertRegex(out, r"(?m)^  f64 +rbp_ell +1 +1 ")

    def test_sorted_rows_on_ranks(self):
        self.succeed("bench", "papers", "rmat:scale=8", "poisson7:n=6", "--paper", 3, "--type", "f64", *QUICK, "--json", "r.json", ranks=2)
        tables = json.loads(self.path("r.json").read_text())["tables"]
        Summaries(self).check(tables)
        rows, sweep = tables["paper_3_ranks"]["rows"], tables["paper_3_ranks_threads"]["rows"]
        self.assertEqual([(row["matrix"], row["ranks"], row["order"], row["rank"]) for row in sweep],
                         [(m, n, order, rank) for m in ("rmat:scale=8", "poisson7:n=6") for n in (1, 2)
                          for order in ("as they are", "sorted") for rank in ("all", *range(n))])
        self.assertEqual([row["other_csr"] for row in rows], ["csr_host, ours", None] * 2)
        self.assertEqual([(row["matrix"], row["ranks"]) for row in rows],
                         [(m, n) for m in ("rmat:scale=8", "poisson7:n=6") for n in (1, 2)])
        self.assertEqual([row["uneven"] for row in rows], ["yes", "yes", "no", "no"])
        for row in rows:
            for key in ("as_is_us", "product_us", "restore_us", "sorted_us"):
                self.assertGreater(row[key], 0)

    def test_the_example_of_its_help(self):
        self.write("nothing.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 0\n")
        out = self.succeed("bench", "papers", "nothing.mtx", "--paper", "2,3,4,5", *QUICK).out
        for paper in (2, 3, 4, 5):
            self.assertIn(f"Paper {paper}", out)

    def test_mistakes(self):
        self.fail_with(USAGE, "bench", "papers", "--paper", 7, says=["--paper", "whole number from 1 to 5", "000 to 004"])
        self.fail_with(USAGE, "bench", "papers", "--paper", "005", says="000 to 004")
        self.fail_with(USAGE, "bench", "papers", "--fold-width", "long", says="or longest")
        self.fail_on_every_rank(USAGE, "bench", "papers", ranks=2, says=["several ranks", "--paper 3"])


if __name__ == "__main__":
    unittest.main()
