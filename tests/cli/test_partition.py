"""Matrix files of all formats to shard files; what `info` says about them."""

import gzip
import json
import re
import shlex
import unittest

import h5py
import numpy as np
import scipy.io
import scipy.sparse as sp

from support import (FEM, INPUT, PROGRAM, RESOURCES, USAGE, CliTest, DATA, assert_product, fem_matrix, own_lines, read_binsparse,
                     read_vector, run, write_binsparse, write_vector)


def best_bottleneck(lengths, parts):
    """The smallest possible largest part of a contiguous split, by bisection."""
    low, high = int(max(lengths, default=0)), int(sum(lengths))
    while low < high:
        limit, used, load = (low + high) // 2, 1, 0
        for length in map(int, lengths):
            if load + length > limit:
                used, load = used + 1, 0
            load += length
        low, high = (low, limit) if used <= parts else (limit + 1, high)
    return low


def needs(matrix, starts):
    """What the parts of a square matrix hold and need of each other: the figures of the table of orders."""
    most = dict(nnz=0, halo=0, neighbours=0, boundary=0)
    sent = np.zeros(len(starts) - 1, dtype=int)
    for begin, end in zip(starts, starts[1:]):
        part = matrix[begin:end]
        foreign = (part.indices < begin) | (part.indices >= end)
        columns = np.unique(part.indices[foreign])
        rows = np.unique(np.repeat(np.arange(end - begin), np.diff(part.indptr))[foreign])
        owners = np.searchsorted(starts, columns, side="right") - 1
        sent += np.bincount(owners, minlength=sent.size)
        found = dict(nnz=part.nnz, halo=columns.size, boundary=int(np.diff(part.indptr)[rows].sum()),
                     neighbours=np.unique(owners).size)
        most = {key: max(most[key], found[key]) for key in most}
    return most | dict(sent=int(sent.max()))


def shuffled(matrix, seed=5):
    shuffle = np.random.default_rng(seed).permutation(matrix.shape[0])
    return matrix[shuffle][:, shuffle].tocsr()


class Partition(CliTest):
    def assert_same(self, name, matrix):
        found = read_binsparse(self.path(name))[1]
        self.assertEqual(found.shape, matrix.shape)
        self.assertEqual((found != matrix).nnz, 0)

    def test_finite_element_matrices_arrive_unchanged(self):
        for name in FEM:
            with self.subTest(matrix=name):
                self.succeed("partition", DATA / f"{name}.mtx.gz", "o.h5", "--parts", "2,4,8")
                self.assert_same("o.h5", fem_matrix(name))
                self.succeed("verify-file", "o.h5")
        for parts in (27, 10_000):
            out = self.succeed("partition", "poisson27:n=3", "g.h5", "--parts", parts, "--reorder", "graph").out
            self.assertNotIn("***", out, "of METIS")
            self.succeed("verify-file", "g.h5")

    def test_text_and_gzip_give_the_same(self):
        self.write("stokes.mtx", gzip.decompress((DATA / "stokes.mtx.gz").read_bytes()))
        self.succeed("partition", "stokes.mtx", "o.h5")
        self.assert_same("o.h5", fem_matrix("stokes"))

    def test_symmetries_and_duplicates_are_expanded_as_scipy_does(self):
        matrix = sp.random(30, 30, density=0.1, random_state=1)
        for symmetry, whole in (("symmetric", matrix + matrix.T), ("skew-symmetric", matrix - matrix.T)):
            scipy.io.mmwrite(str(self.path("m.mtx")), whole, symmetry=symmetry, precision=17)
            self.succeed("partition", "m.mtx", "o.h5")
            self.assert_same("o.h5", sp.csr_matrix(whole))
        self.write("d.mtx", "%%MatrixMarket matrix coordinate integer general\r\n%\r\n\r\n2 3 3\r\n1 3 2\r\n2 1 5\r\n1 3 4\r\n")
        self.succeed("partition", "d.mtx", "o.h5")
        self.assert_same("o.h5", sp.csr_matrix([[0, 0, 6], [5, 0, 0]]))

    def test_npz_of_scipy(self):
        for format in ("csr", "csc", "coo"):
            matrix = sp.random(20, 30, density=0.2, format=format, random_state=2)
            sp.save_npz(self.path("m.npz"), matrix)
            result = self.call("partition", "m.npz", "o.h5")
            if "libzip" in result.err:
                self.skipTest("built without libzip")
            self.assertEqual(result.code, 0, result)
            self.assert_same("o.h5", sp.csr_matrix(matrix))

    def test_shard_file_again_with_other_parts_and_order(self):
        self.succeed("partition", DATA / "stokes.mtx.gz", "a.h5", "--parts", 2)
        self.succeed("partition", "a.h5", "b.h5", "--parts", "3,5", "--method", "rows")
        self.assert_same("b.h5", fem_matrix("stokes"))
        with h5py.File(self.path("b.h5"), "r") as file:
            self.assertEqual(sorted(file["shardmat/partitions"]), ["rows-3", "rows-5"])
        self.succeed("partition", "a.h5", "c.h5", "--sort", "global")
        self.succeed("verify-file", "c.h5")

    def test_reordering_brings_neighbours_together(self):
        matrix = fem_matrix("elasticity_bar")
        mixed = shuffled(matrix)
        scipy.io.mmwrite(str(self.path("shuffled.mtx")), mixed, precision=17)
        self.succeed("partition", "shuffled.mtx", "none.h5", "--parts", "2,4")
        for reorder, title in (("rcm", "reverse Cuthill-McKee"), ("graph", "by parts of the graph")):
            with self.subTest(reorder=reorder):
                result = self.call("partition", "shuffled.mtx", reorder + ".h5", "--parts", "2,4", "--reorder", reorder)
                if "no METIS" in result.err:
                    self.skipTest("built without METIS")
                self.assertEqual(result.code, 0, result)
                none, info = (json.loads(self.succeed("info", name + ".h5", "--json").out) for name in ("none", reorder))
                self.assertEqual((none["order"], info["order"]), ("source", reorder))
                for before, after in zip(none["partitions"], info["partitions"]):
                    self.assertLess(3 * after["halo_total"], before["halo_total"])
                    self.assertLess(after["imbalance"], 1.05)
                self.succeed("verify-file", reorder + ".h5")
                self.assertIn(title, self.succeed("info", reorder + ".h5").out)
                x = np.random.default_rng(6).uniform(-1, 1, matrix.shape[1])
                report = self.json_of("multiply", reorder + ".h5", "--x", write_vector(self.path("x.npy"), x), "--output",
                                      f"{reorder}.npy", "--verify", ranks=3)
                self.assertIn(title, report["partition"]["sort"])
                assert_product(self, read_vector(self.path(f"{reorder}.npy")), mixed, x)

    def order_on_ranks(self, matrix, ranks, parts):
        """a.h5, and the same ordered by several ranks in o.h5, which is returned, as is the permutation."""
        write_binsparse(self.path("a.h5"), matrix)
        result = self.call("partition", "a.h5", "o.h5", "--parts", parts, "--reorder", "graph", ranks=ranks)
        if "no PT-Scotch" in result.err:
            self.assertEqual((result.code, result.messages), (USAGE, result.messages[:1]), result)
            self.assertIn("libptscotch-dev", result.err)
            self.skipTest("built without PT-Scotch, and says so")
        self.assertEqual(result.code, 0, result)
        self.succeed("verify-file", "o.h5")
        with h5py.File(self.path("o.h5"), "r") as file:
            permutation = file["shardmat/permutation"][()]
        self.assertEqual(sorted(permutation), list(range(matrix.shape[0])))
        self.assert_same("o.h5", sp.csr_matrix(matrix)[permutation][:, permutation])
        return permutation

    def test_several_ranks_order_as_one_does(self):
        matrix = fem_matrix("elasticity_bar")
        shuffle = np.random.default_rng(5).permutation(matrix.shape[0])
        shuffled = matrix[shuffle][:, shuffle].tocsr()
        self.order_on_ranks(shuffled, 3, "2,4")
        self.succeed("partition", "a.h5", "none.h5", "--parts", "2,4")
        none, info = (json.loads(self.succeed("info", name, "--json").out) for name in ("none.h5", "o.h5"))
        self.assertEqual(info["order"], "graph")
        for before, after in zip(none["partitions"], info["partitions"]):
            self.assertLess(3 * after["halo_total"], before["halo_total"])
            self.assertLess(after["imbalance"], 1.05)
        x = np.random.default_rng(6).uniform(-1, 1, matrix.shape[1])
        self.succeed("multiply", "o.h5", "--x", write_vector(self.path("x.npy"), x), "--output", "y.npy", "--verify", ranks=2)
        assert_product(self, read_vector(self.path("y.npy")), shuffled, x)

    def test_several_ranks_order_any_pattern(self):
        arrow = sp.lil_matrix((200, 200))
        arrow[0, :], arrow[:, 3] = 1, 2
        for name, matrix in (("unsymmetric", sp.random(400, 400, density=0.02, random_state=1)), ("arrow", arrow),
                             ("empty rows", sp.csr_matrix((50, 50))), ("not connected", sp.eye(300)),
                             ("fewer rows than ranks", sp.csr_matrix([[0, 1], [0, 2]])), ("no rows", sp.csr_matrix((0, 0)))):
            for ranks, parts in ((2, 5), (3, 64)):
                with self.subTest(matrix=name, ranks=ranks):
                    self.order_on_ranks(matrix, ranks, parts)

    def test_several_ranks_order_what_is_ordered_or_generated(self):
        self.order_on_ranks(fem_matrix("convection"), 2, 4)
        self.succeed("partition", "a.h5", "sorted.h5", "--sort", "global")
        self.succeed("partition", "sorted.h5", "again.h5", "--parts", 4, "--reorder", "graph", ranks=2)
        with h5py.File(self.path("again.h5"), "r") as file:
            permutation = file["shardmat/permutation"][()]
        self.assert_same("again.h5", fem_matrix("convection")[permutation][:, permutation])
        self.succeed("partition", "poisson:n=8", "p.h5", "--parts", 4, "--reorder", "graph", ranks=3)
        self.succeed("verify-file", "p.h5")
        self.succeed("partition", "p.h5", "p.h5", "--parts", 2, "--reorder", "graph", ranks=3)  # in its own place
        self.succeed("verify-file", "p.h5")

    def test_several_ranks_order_matrix_files_of_other_programs(self):
        matrix = fem_matrix("stokes")
        sp.save_npz(self.path("stokes.npz"), matrix)
        for name in (DATA / "stokes.mtx.gz", "stokes.npz"):
            self.succeed("partition", name, "o.h5", "--parts", 4, "--reorder", "graph", "--force", ranks=3)
            with h5py.File(self.path("o.h5"), "r") as file:
                permutation = file["shardmat/permutation"][()]
            self.assert_same("o.h5", matrix[permutation][:, permutation])

    def test_what_several_ranks_refuse(self):
        graph = ("--parts", 2, "--reorder", "graph")
        self.fail_on_every_rank(USAGE, "partition", "poisson:n=4", "o.h5", "--reorder", "graph", says="--parts")
        self.fail_on_every_rank(USAGE, "partition", "poisson:n=4", "o.h5", *graph, "--sort", "global", says="one of them")
        self.fail_on_every_rank(USAGE, "partition", "poisson:n=4", "o.h5", "--parts", 2, "--reorder", "rcm", says="without mpirun")
        self.fail_on_every_rank(INPUT, "partition", "none.h5", "o.h5", *graph, says="no such file")
        write_binsparse(self.path("wide.h5"), sp.csr_matrix((1, 2)))
        self.fail_on_every_rank(USAGE, "partition", "wide.h5", "o.h5", *graph, says="square")

    def test_what_fails_while_several_ranks_work(self):
        self.order_on_ranks(sp.eye(10), 2, 2)
        write_binsparse(self.path("nan.h5"), sp.csr_matrix([[1.0, 2.0], [float("nan"), 3.0]]))
        self.fail_on_every_rank(INPUT, "partition", "nan.h5", "p.h5", "--parts", 2, "--reorder", "graph", ranks=2, says="nan")
        before = self.files()
        limited = ["mpirun", "-n", 2, "sh", "-c", 'ulimit -f 32768; exec "$@"', "sh", PROGRAM]  # 16 MB; mpirun itself needs more
        result = run([*limited, "partition", "poisson:n=50", "big.h5", "--parts", 1, "--reorder", "graph"], self.directory)
        self.assertEqual((result.code, len(result.messages)), (RESOURCES, 1), result)
        self.assertIn("cannot write", result.messages[0])
        self.assertEqual(self.files(), before)

    def test_orders_that_do_not_go(self):
        self.fail_with(USAGE, "partition", DATA / "stokes.mtx.gz", "o.h5", "--reorder", "rcm", "--sort", "global", says="one of them")
        self.write("wide.mtx", "%%MatrixMarket matrix coordinate pattern general\n1 2 1\n1 1\n")
        for reorder in ("rcm", "graph"):
            self.fail_with(USAGE, "partition", "wide.mtx", "o.h5", "--parts", 2, "--reorder", reorder, says="square")
        self.fail_with(USAGE, "partition", DATA / "stokes.mtx.gz", "o.h5", "--reorder", "graph", says="--parts")
        self.fail_with(USAGE, "partition", DATA / "stokes.mtx.gz", "o.h5", "--parts", "2,4,2", says=["2 parts are named twice", "(--parts)"])
        self.assertFalse(self.path("o.h5").exists())

    def test_no_contiguous_split_is_better(self):
        self.succeed("partition", DATA / "convection.mtx.gz", "o.h5", "--parts", "2,3,7,50")
        lengths = np.diff(fem_matrix("convection").indptr)
        for stored in json.loads(self.succeed("info", "o.h5", "--json").out)["partitions"]:
            self.assertEqual(stored["nnz_max"], best_bottleneck(lengths, stored["parts"]))

    def test_halo_figures_are_what_scipy_counts(self):
        self.succeed("partition", DATA / "stokes.mtx.gz", "o.h5", "--parts", 3)
        (stored,) = json.loads(self.succeed("info", "o.h5", "--json").out)["partitions"]
        matrix, starts, halo = fem_matrix("stokes"), stored["row_starts"], []
        for begin, end in zip(starts, starts[1:]):
            columns = np.unique(matrix[begin:end].indices)
            halo.append(int(np.count_nonzero((columns < begin) | (columns >= end))))
        self.assertEqual((stored["halo_max"], stored["halo_total"]), (max(halo), sum(halo)))
        self.assertEqual(stored["allgather_max"], 2 * max(np.diff(starts)))  # parts padded to the largest

    def test_more_parts_than_rows(self):
        self.write("one.mtx", "%%MatrixMarket matrix coordinate pattern general\n1 1 1\n1 1\n")
        self.succeed("partition", "one.mtx", "o.h5", "--parts", "1,7,1000000", limit=30)
        self.succeed("verify-file", "o.h5")
        for parts in (27, 10_000):
            out = self.succeed("partition", "poisson27:n=3", "g.h5", "--parts", parts, "--reorder", "graph").out
            self.assertNotIn("***", out, "of METIS")
            self.succeed("verify-file", "g.h5")

    def test_info_tells_the_shape_and_every_partition(self):
        self.succeed("partition", DATA / "stokes.mtx.gz", "o.h5", "--parts", "2,4")
        text = self.succeed("info", "o.h5").out
        for word in ("783 × 783", "56,641 nonzeros", "imbalance", "halo", "stokes.mtx.gz"):
            self.assertIn(word, text)
        data = json.loads(self.succeed("info", "o.h5", "--json").out)
        self.assertEqual((data["rows"], data["cols"], data["nnz"]), (783, 783, 56641))
        self.assertEqual([p["parts"] for p in data["partitions"]], [2, 4])


class Orders(CliTest):
    """--reorder auto, --method auto and --compare: what they count, foretell and take."""

    LINE = re.compile(r"^  ([* ]) (as it comes|length|rcm|graph) +(nnz|rows) +(\d+) +([\d,]+) +([\d.]+) +([\d,]+) +"
                      r"(?:([\d.]+) ×|-) +([\d,]+) +(?:([\d.]+) %|-) +([\d.]+) (µs|ms|s) +([\d.]+) (µs|ms|s)$")
    SECONDS = {"s": 1, "ms": 1e-3, "µs": 1e-6}

    def lines(self, text):
        """{(order, method, parts): figures}, and the order and the method that are marked."""
        found, marked = {}, set()
        for line in text.splitlines():
            self.assertLessEqual(len(line), 125, line)
            if not (match := self.LINE.match(line)):
                continue
            mark, order, method, parts, nnz, imbalance, halo, ratio, neighbours, boundary, *times = match.groups()
            found[order, method, int(parts)] = dict(
                nnz=int(nnz.replace(",", "")), imbalance=float(imbalance), halo=int(halo.replace(",", "")),
                ratio=float(ratio or "nan"), neighbours=int(neighbours), boundary=float(boundary or "nan"),
                exchange=float(times[0]) * self.SECONDS[times[1]], iteration=float(times[2]) * self.SECONDS[times[3]])
            if mark == "*":
                marked.add((order, method))
        self.assertEqual(len(marked), 1, text)
        return found, marked.pop()

    def study(self, name="study.json", *, product=(1e-3, 1e-6), exchange=(2e-3, 1e-6), exchanges=("halo",)):
        """A report of bench scaling, as far as models go."""
        costs = [{"name": e, "latency_s": exchange[0], "s_per_byte": exchange[1]} for e in exchanges]
        points = [{"nnz": nnz, "seconds": product[0] + nnz * product[1]} for nnz in (0, 1_000_000)]
        model = {"matrix": "bar.h5", "product": points, "entry_bytes": 8,
                 "overlaps": True, "split_latency_s": product[0] / 2, "measured_ranks": 2, "exchanges": costs}
        return self.write(name, json.dumps({"models": [model], "cases": []}))

    def order_of(self, name):
        return json.loads(self.succeed("info", name, "--json").out)["order"]

    def test_figures_are_what_scipy_counts(self):
        scipy.io.mmwrite(str(self.path("m.mtx")), shuffled(fem_matrix("stokes")), precision=17)
        table, _ = self.lines(self.succeed("partition", "m.mtx", "--parts", "5,2", "--compare", "--model", self.study()).out)
        orders = {"as it comes": (), "length": ("--sort", "global"), "rcm": ("--reorder", "rcm"), "graph": ("--reorder", "graph")}
        if not any(order == "graph" for order, *_ in table):
            del orders["graph"]  # built without METIS
        self.assertEqual(len(table), 4 * len(orders))
        for order, options in orders.items():
            for method in ("nnz", "rows"):
                self.succeed("partition", "m.mtx", "o.h5", "--parts", "2,5", "--method", method, *options)
                matrix = read_binsparse(self.path("o.h5"))[1]
                for stored in json.loads(self.succeed("info", "o.h5", "--json").out)["partitions"]:
                    parts = stored["parts"]
                    with self.subTest(order=order, method=method, parts=parts):
                        line, most = table[order, method, parts], needs(matrix, stored["row_starts"])
                        self.assertEqual([line[key] for key in ("nnz", "halo", "neighbours")],
                                         [most[key] for key in ("nnz", "halo", "neighbours")])
                        self.assertAlmostEqual(line["imbalance"], most["nnz"] * parts / matrix.nnz, delta=1e-4)
                        self.assertAlmostEqual(line["boundary"], 100 * most["boundary"] / most["nnz"], delta=0.051)
                        self.assertAlmostEqual(line["ratio"], most["halo"] / table["as it comes", method, parts]["halo"], delta=0.0051)
                        exchange, product = 2e-3 + 8e-6 * max(most["halo"], most["sent"]), 1e-3 + 1e-6 * most["nnz"]
                        iteration = (product + exchange if 2 * most["boundary"] > most["nnz"] else
                                     max(product + 5e-4, exchange + 1e-3 + 1e-6 * most["boundary"]))
                        self.assertAlmostEqual(line["exchange"] / exchange, 1, delta=0.006)
                        self.assertAlmostEqual(line["iteration"] / iteration, 1, delta=0.006)

    def test_a_shuffled_mesh_is_reordered_and_a_well_ordered_one_stays(self):
        self.succeed("generate", "poisson27", "--n", 24, "well.h5")
        matrix = read_binsparse(self.path("well.h5"))[1]
        write_binsparse(self.path("mixed.h5"), shuffled(matrix))
        for name, stays in (("well", True), ("mixed", False)):
            text = self.succeed("partition", f"{name}.h5", "o.h5", "--parts", "2,4", "--reorder", "auto").out
            table, (order, method) = self.lines(text)
            self.assertIn("NVIDIA H200", text)
            self.assertEqual((order == "as it comes", method), (stays, "nnz"), text)
            self.assertEqual(self.order_of("o.h5"), "source" if stays else order)
            stored = {p["parts"]: p for p in json.loads(self.succeed("info", "o.h5", "--json").out)["partitions"]}
            self.assertEqual({parts: p["halo_max"] for parts, p in stored.items()},
                             {parts: table[order, method, parts]["halo"] for parts in (2, 4)})
            self.succeed("verify-file", "o.h5")
            least = min(line["iteration"] for (_, _, parts), line in table.items() if parts == 4)
            self.assertLessEqual(table[order, method, 4]["iteration"], 1.015 * least)
        found = read_binsparse(self.path("o.h5"))[1]
        with h5py.File(self.path("o.h5"), "r") as file:
            inverse = np.argsort(file["shardmat/permutation"][()])
        self.assertEqual((found[inverse][:, inverse] != shuffled(matrix)).nnz, 0)

    def test_generators_have_orders_too(self):
        before = self.files()
        table, _ = self.lines(self.succeed("generate", "rmat", "--scale", 8, "--parts", 3, "--compare").out)
        self.assertEqual(self.files(), before)
        self.assertTrue({("length", "nnz", 3), ("rcm", "rows", 3)} <= table.keys())
        text = self.succeed("generate", "rmat", "--scale", 8, "o.h5", "--parts", 3, "--reorder", "auto", "--method", "rows").out
        self.assertEqual({method for _, method, _ in self.lines(text)[0]}, {"rows"})

    def test_sorting_rows_is_answered(self):
        text = self.succeed("partition", DATA / "stokes.mtx.gz", "--parts", 4, "--compare").out
        table, (_, method) = self.lines(text)
        halos = [f"{table[order, method, 4]['halo']:,}" for order in ("as it comes", "length")]
        self.assertIn(f"--sort global needs {halos[0]} → {halos[1]} entries", text)
        self.assertIn("--sort local moves rows within their part", text)

    def test_a_rectangular_matrix_offers_what_goes(self):
        matrix = sp.random(90, 40, density=0.2, format="csr", random_state=3)
        scipy.io.mmwrite(str(self.path("wide.mtx")), matrix, precision=17)
        table, _ = self.lines(self.succeed("partition", "wide.mtx", "o.h5", "--parts", 3, "--reorder", "auto").out)
        self.assertEqual({order for order, *_ in table}, {"as it comes", "length"})
        self.succeed("verify-file", "o.h5")
        for parts in (27, 10_000):
            out = self.succeed("partition", "poisson27:n=3", "g.h5", "--parts", parts, "--reorder", "graph").out
            self.assertNotIn("***", out, "of METIS")
            self.succeed("verify-file", "g.h5")

    def test_method_auto_weighs_balance_against_halo(self):
        rng = np.random.default_rng(4)  # dense rows and sparse ones: equal rows need nothing of each other
        blocks = sp.block_diag([rng.uniform(1, 2, (80, 80)), sp.identity(80)], format="csr")
        scipy.io.mmwrite(str(self.path("b.mtx")), sp.csr_matrix(blocks), precision=17)
        for name, exchange, method in (("slow.json", (1e-6, 1e-6), "rows"), ("fast.json", (1e-6, 1e-12), "nnz")):
            study = self.study(name, product=(0, 1e-9), exchange=exchange)
            text = self.succeed("partition", "b.mtx", "o.h5", "--parts", 2, "--method", "auto", "--model", study).out
            self.assertEqual(self.lines(text)[1], ("as it comes", method), text)
            self.assertIn(name, text)
            with h5py.File(self.path("o.h5"), "r") as file:
                self.assertEqual(list(file["shardmat/partitions"]), [f"{method}-2"])

    def test_a_study_of_bench_scaling_is_a_model(self):
        self.succeed("bench", "scaling", "poisson27:n=8", "--iterations", 3, "--backend", "host", "--json", "s.json", ranks=2)
        text = self.succeed("partition", DATA / "stokes.mtx.gz", "--parts", 4, "--compare", "--model", "s.json").out
        self.lines(text)
        self.assertIn("as measured in s.json", text)
        self.assertNotIn("H200", text)

    def test_methods_that_are_orders_say_what_to_type(self):
        for typed in (("--method", "graph"), ("--method=rcm",)):
            order = typed[-1].split("=")[-1]
            result = self.fail_with(USAGE, "partition", DATA / "stokes.mtx.gz", "o.h5", "--parts", 2, *typed, says=f"{order} is an order")
            command = shlex.split(result.messages[0].split("type: ")[1].split(";")[0])
            again = run(command, self.directory)
            if "no METIS" in again.err:
                continue
            self.assertEqual((again.code, own_lines(again.err)), (0, []), again)
            self.assertEqual(self.order_of("o.h5"), order)
            self.path("o.h5").unlink()

    def test_what_does_not_go(self):
        stokes = DATA / "stokes.mtx.gz"
        self.fail_with(USAGE, "partition", stokes, "o.h5", "--parts", 2, "--compare", says="--compare")
        self.fail_with(USAGE, "partition", stokes, "--parts", 2, "--compare", "--reorder", "rcm", says="--compare")
        self.fail_with(USAGE, "partition", stokes, "--parts", 2, says="output is required")
        self.fail_with(USAGE, "partition", stokes, "--compare", "--parts", 2, "--sort", "global", says="one of them")
        for options in (("--reorder", "auto"), ("--method", "auto")):
            self.fail_with(USAGE, "partition", stokes, "o.h5", *options, says="--parts")
        self.study()
        self.fail_with(USAGE, "partition", stokes, "o.h5", "--parts", 2, "--model", "study.json", says="--reorder auto")
        self.study("alone.json", exchanges=())
        self.write("other.json", "[1, 2")
        for model, says in (("none.json", "none.json: there is no such file"), ("other.json", "other.json: it is no JSON"),
                            ("alone.json", "alone.json was measured on one rank")):
            self.fail_with(INPUT, "partition", stokes, "--parts", 2, "--compare", "--model", model, says=says)

    def test_help_names_the_choices(self):
        text = " ".join(self.succeed("partition", "--help-all").out.split())
        for word in ("--compare", "--model", "--reorder auto", "bench scaling", "predicted to be the fastest"):
            self.assertIn(word, text)


if __name__ == "__main__":
    unittest.main()
