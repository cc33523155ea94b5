"""Commands for matrices take every matrix file; on several ranks the result has the bits of that of the shard file."""

import gzip
import json
import unittest

import numpy as np
import scipy.sparse as sp

from support import DATA, INPUT, CliTest, assert_product, fem_matrix, read_vector, write_binsparse

BANNER = "%%MatrixMarket matrix coordinate {} {}\n"


def text(field, symmetry, shape, entries):
    lines = [" ".join(map(str, entry)) for entry in entries]
    return BANNER.format(field, symmetry) + "% made by a test\n" + f"{shape[0]} {shape[1]} {len(lines)}\n" + "\n".join(lines) + "\n"


def lower(n, seed):
    """Places below the diagonal in a scattered order, an empty row and an empty column among them."""
    random = np.random.default_rng(seed)
    places = {(int(i), int(j)) for i, j in random.integers(1, n + 1, (6 * n, 2)) if i >= j and 5 not in (i, j)}
    return random.permutation(sorted(places)).tolist()


def files():
    """Name to content; values are such that the order of sums shows in the last bits."""
    random = np.random.default_rng(2)
    wide = [(*place, value) for place, value in zip(random.integers(1, [40, 90], (900, 2)).tolist(), random.normal(size=900))]
    yield "duplicates.mtx", text("real", "general", (50, 100), wide + wide[:400] + [(2, 2, 1e-3 * k) for k in range(1, 300)])
    yield "symmetric.mtx.gz", gzip.compress(text("real", "symmetric", (80, 80), [(i, j, 0.1 * i - 0.7 * j) for i, j in lower(80, 1)]).encode())
    yield "integer.mtx", text("integer", "general", (30, 200), [(i, 2 * j, i - 3 * j) for i, j in lower(30, 4)])


class AnyFile(CliTest):
    def compare(self, name, *counts):
        """A product with the file and one with the shard file that partition makes of it, on these ranks, bit for bit."""
        self.succeed("partition", name, "made.h5", "--parts", "1,2,3", "--force")
        for ranks in counts:
            with self.subTest(matrix=name, ranks=ranks):
                report = {}
                for matrix, output in ((name, "a.npy"), ("made.h5", "b.npy")):
                    report[matrix] = json.loads(self.succeed(
                        "multiply", matrix, "--output", output, "--iterations", 0, "--verify", "--no-measure", "--json", "-",
                        ranks=ranks).out)
                self.assertEqual(self.path("a.npy").read_bytes(), self.path("b.npy").read_bytes())
                found, expected = report[name], report["made.h5"]
                self.assertEqual([found["matrix"][k] for k in ("rows", "cols", "nnz")],
                                 [expected["matrix"][k] for k in ("rows", "cols", "nnz")])
                self.assertEqual(found["partition"]["rows"], expected["partition"]["rows"])
                self.assertEqual(found["partition"]["nnz"], expected["partition"]["nnz"])
                who = f"{ranks} rank{'s'[:ranks - 1]}" if ranks == 1 or str(name).endswith(".mtx") else f"rank 0 for {ranks} ranks"
                self.assertEqual(found["matrix"]["access"],
                                 f"{who}, from {self.path(name).name}; kept in memory, also for the verification")

    def test_products_have_the_bits_of_those_from_the_shard_file(self):
        for (name, content), ranks in zip(files(), ((1, 2, 3), (2, 3), (3,))):
            self.compare(self.write(name, content), *ranks)

    def test_archives_of_scipy(self):
        matrix = fem_matrix("convection")
        matrix.data[matrix.indptr[7] : matrix.indptr[8]] = 0
        matrix.eliminate_zeros()  # row 7 is empty
        for name, stored, ranks in (("csr.npz", matrix, (1, 2)), ("csc.npz", matrix[:, :500].tocsc(), (2,)),
                                    ("coo.npz", sp.vstack([matrix, matrix]).tocoo(), (3,))):
            sp.save_npz(self.path(name), stored)
            self.compare(name, *ranks)

    def test_product_is_that_of_scipy(self):
        x = np.random.default_rng(1).uniform(-1, 1, 1938)
        np.save(self.path("x.npy"), x)
        self.succeed("multiply", DATA / "convection.mtx.gz", "--x", "x.npy", "--output", "y.npy", "--method", "rows", ranks=3)
        assert_product(self, read_vector(self.path("y.npy")), fem_matrix("convection"), x)

    def test_several_matrices_split_and_whole(self):
        for name, content in files():
            self.write(name, content)
        sp.save_npz(self.path("csr.npz"), fem_matrix("stokes"))
        names = ("duplicates.mtx", "symmetric.mtx.gz", "csr.npz", "poisson:n=5")
        for placement in ("split", "whole"):
            report = self.json_of("multiply", *names, "--batch", placement, "--verify", "--iterations", 2, ranks=2)
            self.assertEqual([m["verification"]["passed"] for m in report["batch"]], [True] * 4, report)

    def test_scaling_study_of_a_text_file(self):
        self.succeed("convert", "poisson:n=6", "a.mtx")
        report = self.json_of("bench", "scaling", "a.mtx", "--iterations", 5, ranks=2)
        self.assertEqual([case["ranks"] for case in report["cases"]], [1, 2, 2])

    def test_hdf5_of_any_name(self):
        write_binsparse(self.path("a.h5"), fem_matrix("stokes"))
        self.path("a.h5").rename(self.path("a.matrix"))
        for command in (("multiply", "a.matrix"), ("info", "a.matrix", "--quick"), ("partition", "a.matrix", "o.h5"),
                        ("convert", "a.matrix", "o.mtx"), ("verify-file", "a.matrix")):
            self.succeed(*command)

    def test_values_that_are_not_finite_need_permission(self):
        self.write("nan.mtx", text("real", "general", (2, 2), [(1, 1, "nan"), (2, 2, 1)]))
        self.fail_on_every_rank(INPUT, "multiply", "nan.mtx", ranks=2, says=["nan.mtx:4", "--allow-nonfinite"])
        self.succeed("multiply", "nan.mtx", "--allow-nonfinite", ranks=2)


class Damage(CliTest):
    def refused_alike(self, name, content):
        """What partition says, on every rank."""
        self.write(name, content)
        result = self.fail_with(INPUT, "partition", name, "o.h5", says=name)
        self.fail_on_every_rank(INPUT, "multiply", name, ranks=3, says=result.messages[0].removeprefix("shardmat: "))

    def test_message_of_partition_on_every_rank(self):
        good = text("real", "general", (50, 50), [(i, j, i + 0.5 * j) for i in range(1, 51) for j in range(1, 40)])
        compressed = gzip.compress(good.encode())
        self.refused_alike("out.mtx", good.replace("\n9 3 ", "\n9 51 ").replace("\n44 3 ", "\n0 3 "))
        self.refused_alike("value.mtx", good.replace("\n47 3 ", "\n47 3 x"))
        self.refused_alike("many.mtx", good + "1 1 1\n")
        self.refused_alike("none.mtx", "")
        self.refused_alike("cut.mtx.gz", compressed[: len(compressed) // 2])
        self.refused_alike("value.mtx.gz", gzip.compress(good.replace("\n47 3 ", "\n47 3 x").encode()))
        sp.save_npz(self.path("good.npz"), fem_matrix("stokes"), compressed=False)
        archive = bytearray(self.path("good.npz").read_bytes())
        self.path("good.npz").unlink()
        archive[len(archive) // 2] ^= 0xFF
        self.refused_alike("bad.npz", bytes(archive))
        np.savez(self.path("a.npz"), format=np.array(b"csr"), shape=[2, 2], indptr=[0, 1, 2], indices=[0, 7], data=[1.0, 2.0])
        content = self.path("a.npz").read_bytes()
        self.path("a.npz").unlink()
        self.refused_alike("column.npz", content)

    def test_only_shard_files_are_verified(self):
        self.write("a.mtx", text("real", "general", (2, 2), [(1, 1, 1)]))
        self.fail_with(INPUT, "verify-file", "a.mtx", says=["no checksums", "shardmat info a.mtx", "shardmat partition a.mtx"])
        self.fail_with(INPUT, "verify-file", "poisson:n=3", says="a generator, not a file")
        self.fail_with(INPUT, "verify-file", "b.mtx", says=["b.mtx", "no such file", "did you mean a.mtx?"])

    def test_files_without_one_matrix(self):
        self.refused_alike("array.mtx", "%%MatrixMarket matrix array real general\n1 1\n1\n")
        self.refused_alike("noise.txt", "1 2 3\n")
        np.save(self.path("a.npy"), np.eye(2))
        self.fail_on_every_rank(INPUT, "multiply", "a.npy", ranks=2, says=["a.npy", "dense array", "scipy.sparse.save_npz"])


if __name__ == "__main__":
    unittest.main()
