"""Benchmarks beside other libraries: answers of peers are compared with ours, and what peers lack is named."""

import json
import pathlib
import shutil
import sys
import unittest

from support import OK, PROGRAM, RESOURCES, USAGE, CliTest, has_matplotlib, run, words_of

BENCH = pathlib.Path(PROGRAM).parent / "shardmat-bench"
HAS_PEERS = (pathlib.Path(PROGRAM).parent / "shardmat-peers").exists()


# A program in place of shardmat-peers, with peers that are right, wrong or broken. It needs no library.
STAND_IN = """#!{python}
import mmap, os, socket, struct, sys
words = {{}}
connection = socket.socket(socket.AF_UNIX)
connection.connect("\\0" + sys.argv[1])
lines = connection.makefile("rw")
def say(text):
    print(text, file=lines, flush=True)
say(f"hello {{os.getpid()}}")
def product(block):
    rows, cols, nnz, columns, by_column, width, row_ptr, col_idx, values, x, y, size = struct.unpack("12q", block[:96])
    pointers = struct.unpack(f"{{rows + 1}}i", block[row_ptr:row_ptr + 4 * (rows + 1)])
    indices = struct.unpack(f"{{nnz}}i", block[col_idx:col_idx + 4 * nnz])
    numbers = struct.unpack(f"{{nnz}}d", block[values:values + 8 * nnz])
    vector = struct.unpack(f"{{cols}}d", block[x:x + 8 * cols])
    result = [sum(numbers[k] * vector[indices[k]] for k in range(pointers[i], pointers[i + 1])) for i in range(rows)]
    block[y:y + 8 * rows] = struct.pack(f"{{rows}}d", *result)
def solve(block, factor):
    # a diagonal of sixes
    rows, y = struct.unpack("q", block[:8])[0], struct.unpack("q", block[80:88])[0]
    block[y:y + 8 * rows] = struct.pack(f"{{rows}}d", *[1 / (6 * factor)] * rows)
block = peer = None
for line in lines:
    verb, _, argument = line.rstrip("\\n").partition(" ")
    if verb == "list":
        peers = {peers!r}
        kind = lambda p: "multigrid" if p.startswith("amg") else "product"
        say("\\n".join([f"ok {{len(peers)}}"] + [f"{{p}}\\tThe {{p}}\\tfull\\tthreads\\t{{kind(p)}}" for p in peers]))
    elif verb == "open":
        with open(argument, "r+b") as file:
            block = mmap.mmap(file.fileno(), 0)
        say("ok")
    elif verb == "prepare":
        peer = argument
        say("no for want of teeth" if peer == "shy" else "ok as it is")
    elif verb == "run" and peer == "mortal":
        sys.exit(1)
    elif verb == "run":
        say(f"ok {{int(argument) * (1e-9 if peer == 'liar' else 10.0)}}")
    elif verb == "set_up":
        factor = 1
        say("no for want of hands" if peer == "amg_shy" else "ok 0.5 1000000")
    elif verb == "solve":
        say("ok 0.25 7")
    elif verb == "refresh":
        factor = 2
        say("ok 0.125 0")
    elif verb == "result" and peer.startswith("amg"):
        if peer == "amg_honest":
            solve(block, factor)
        elif peer == "amg_forgetful":
            solve(block, 1)
        say("ok")
    elif verb == "result" and peer != "liar":
        product(block)
        say("ok")
    else:
        say("ok")
"""


class Peers(CliTest):
    """--peers: with a program in place of the libraries, and with those that are there."""

    HOST = ("--backend", "host", "--repetitions", 3)
    QUICKER = ("--backend", "host", "--repetitions", 1)

    def call_beside(self, *arguments, peers=None, **options):
        """Calls a copy of the program that has a stand-in beside it, or nothing."""
        folder = self.path("bin")
        if not folder.exists():
            folder.mkdir()
            for program in (PROGRAM, BENCH):
                shutil.copy2(program, folder)
        if peers:
            (folder / "shardmat-peers").write_text(STAND_IN.format(python=sys.executable, peers=peers))
            (folder / "shardmat-peers").chmod(0o755)
        return run([folder / "shardmat", "bench", *arguments, *self.HOST], self.directory, **options)

    def test_none_was_built(self):
        for bench, work in (("kernels", "poisson7:n=4"), ("spmm", "poisson7:n=4"), ("batched", "batch:count=5,dim=8,row_nnz=2,seed=1")):
            result = self.call_beside(bench, work, "--peers")
            self.assertEqual(result.code, RESOURCES, result)
            self.assertEqual(len(result.messages), 1, result)
            for word in ("shardmat-peers", "libeigen3-dev", "petsc-dev", "deploy/install-dependencies.sh --peers"):
                self.assertIn(word, result.messages[0])

    def test_right_and_wrong_peers(self):
        result = self.call_beside("kernels", "poisson7:n=4", "--type", "f64", "--kernel", "auto,csr_host", "--peers", "--json",
                                  "r.json", peers=["liar", "shy", "honest"])
        self.assertEqual(result.code, OK, result)
        report = json.loads(self.path("r.json").read_text())
        self.assertIs(report["complete"], True)
        (case,) = report["cases"]
        peers = {peer["name"]: peer for peer in case["peers"]}
        self.assertEqual(peers["liar"]["wrong_entries"], 64)
        self.assertEqual(peers["shy"]["refused"], "for want of teeth")
        self.assertEqual((peers["honest"]["wrong_entries"], peers["honest"]["detail"]), (0, "as it is"))
        self.assertEqual([own["asked"] for own in case["ours"]], ["auto", "csr_host"])
        for own in case["ours"]:
            self.assertEqual(own["wrong_entries"], 0)
            self.assertIsNone(own["best_symmetric_peer"])
            best = own["best_peer"]
            self.assertEqual((best["peer"], best["peer_s"], best["pairs"]), ("The honest", 10, 3))
            self.assertAlmostEqual(best["coverage"], 0.75)
            self.assertLessEqual(best["low"], best["ratio"])
            self.assertLessEqual(best["ratio"], best["high"])
        for word in ("The liar", "WRONG: 64 entries", "not measured: The shy: for want of teeth", "SciPy left out"):
            self.assertIn(word, result.out)

    def test_solvers_that_are_right_wrong_and_refuse(self):
        self.write("six.mtx", "%%MatrixMarket matrix coordinate real symmetric\n5 5 5\n" + "".join(f"{i} {i} 6\n" for i in range(1, 6)))
        result = self.call_beside("solve", "six.mtx", "--threads", 1, "--preconditioner", "jacobi,multigrid", "--json", "r.json",
                                  peers=["amg_liar", "amg_forgetful", "amg_shy", "amg_honest", "honest"])
        self.assertEqual(result.code, OK, result)
        report = json.loads(self.path("r.json").read_text())
        rows = {row["solver"]: row for row in report["table"]["rows"]}
        self.assertEqual(set(rows), {"Shardmat jacobi", "Shardmat multigrid", "The amg_liar", "The amg_forgetful", "The amg_honest"})
        honest = rows["The amg_honest"]
        self.assertEqual([honest[key] for key in ("set_up_s", "refresh_s", "solve_s", "whole_s", "iterations", "right", "bytes", "over")],
                         [0.5, 0.125, 0.25, 0.75, 7, True, 1e6, "multigrid"])
        self.assertGreater(honest["ratio"], 0)
        for liar in ("The amg_liar", "The amg_forgetful"):
            self.assertEqual((rows[liar]["right"], rows[liar]["ratio"]), (False, None), liar)
        self.assertIn("without The amg_shy: for want of hands", " ".join(report["table"]["notes"]))
        self.assertIn("WRONG", result.out)

    def test_solvers_without_peers(self):
        result = self.call_beside("solve", "poisson7:n=3,uniform")
        self.assertEqual(result.code, OK, result)
        for word in ("Without peers", "petsc-dev", "Shardmat multigrid"):
            self.assertIn(word, result.out)

    def test_a_peer_that_ends(self):
        result = self.call_beside("kernels", "poisson7:n=4", "--type", "f64", "--peers", peers=["mortal"])
        self.assertEqual(result.code, RESOURCES, result)
        self.assertEqual(len(result.messages), 1, result)
        self.assertIn("has ended while it was needed", result.messages[0])

    def check(self, report, cases):
        self.assertEqual([(c["type"], c["threads"], c["rhs"], c["order"]) for c in report["cases"]], cases)
        measured = set()
        for case in report["cases"]:
            for own in case["ours"]:
                self.assertEqual(own["wrong_entries"], 0)
            for peer in case["peers"]:
                if "refused" not in peer:
                    self.assertEqual(peer["wrong_entries"], 0, (peer, case["type"], case["threads"]))
                    self.assertGreater(peer["median_s"], 0)
                    measured.add(peer["name"])
        return measured

    @unittest.skipUnless(HAS_PEERS, "no library to compare with was found when Shardmat was built")
    def test_every_library_is_right(self):
        measured, listed = set(), set()
        for threads, types in ((1, ["f32", "f64"]), (2, ["f64"])):
            report = self.json_of("bench", "kernels", "elasticity:n=5", "--threads", threads, "--type", ",".join(types),
                                  "--peers", *self.QUICKER, limit=300)
            measured |= self.check(report, [(type, threads, 1, "row") for type in types])
            listed |= {peer["name"] for case in report["cases"] for peer in case["peers"]}
        self.assertEqual(measured, listed, "a library takes no product of a symmetric matrix with blocks of 3")

    @unittest.skipUnless(HAS_PEERS, "no library to compare with was found when Shardmat was built")
    def test_several_columns_and_batches(self):
        report = self.json_of("bench", "spmm", "poisson27:n=5", "--type", "f64", "--rhs", "1,4", "--order", "row,column",
                              "--peers", *self.QUICKER, limit=300)
        self.check(report, [("f64", 1, rhs, order) for order in ("row", "column") for rhs in (1, 4)])
        report = self.json_of("bench", "batched", "batch:count=4,dim=1-9,row_nnz=0-3,seed=2", "--rhs", 8, "--peers",
                              *self.QUICKER, limit=300)
        self.check(report, [("f32", 1, 8, "row")])

    @unittest.skipUnless(HAS_PEERS, "no library to compare with was found when Shardmat was built")
    def test_rectangular_matrices_have_no_symmetric_peer(self):
        report = self.json_of("bench", "kernels", "random:n=60,cols=90,row_nnz=4", "--type", "f64", "--peers",
                              *self.QUICKER, limit=300)
        self.check(report, [("f64", 1, 1, "row")])
        for peer in report["cases"][0]["peers"]:
            if peer["symmetric"]:
                self.assertIn("not square", peer["refused"])

    @unittest.skipUnless(HAS_PEERS, "no library to compare with was found when Shardmat was built")
    def test_text_and_picture(self):
        picture = ("--plot", "r.svg") if has_matplotlib() else ()
        out = self.succeed("bench", "kernels", "elasticity:n=4", "--type", "f64", "--peers", *picture, *self.QUICKER,
                           limit=300).out
        for word in ("elasticity:n=4: 192 × 192", "best peer", "interval of 90 %", "Summary", "Geometric mean of 1 ratio"):
            self.assertIn(word, out)
        if picture:
            self.assertIn("time of the fastest peer over ours", words_of(self.path("r.svg")))

    def test_mistakes(self):
        work = ("kernels", "poisson7:n=4")
        self.fail_with(USAGE, "bench", *work, "--threads", 2, says=["--threads", "--peers"])
        self.fail_with(USAGE, "bench", *work, "--peers", "--threads", 0, says=["--threads", "1"])
        self.fail_with(USAGE, "bench", *work, "--peers", "--warm", says=["--peers", "--warm"])
        self.fail_with(USAGE, "bench", *work, "--peers", "--kernel", "all", says=["--peers", "all of them"])
        self.fail_with(USAGE, "bench", *work, "--peers", "--kernel", "csr_hots", says="did you mean 'csr_host'")
        self.fail_with(USAGE, "bench", *work, "--peers", "--backend", "cuda", says="--backend host")
        self.fail_with(USAGE, "bench", "spmm", "poisson7:n=4", "--peers", "--type", "f16", says=["--type", "f32 and f64"])


if __name__ == "__main__":
    unittest.main()
