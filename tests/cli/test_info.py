"""What info tells of a matrix is what SciPy counts; pictures show where the nonzeros are."""

import importlib.util
import json
import struct
import sys
import unittest
import zlib

import numpy as np
import scipy.sparse as sp

from support import DATA, INPUT, RESOURCES, ROOT, USAGE, CliTest, fem_matrix, run


def locality(columns, bits):
    """Tomimori et al.: the mean of the counts emitted at each change of line."""
    lines = np.asarray(columns) >> bits
    return lines.size / (1 + np.count_nonzero(np.diff(lines))) if lines.size else 0


def read_gray_png(path):
    """An 8-bit gray picture without interlacing, decoded by hand; every chunk's checksum is compared."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    while at < len(data):
        (length,), kind = struct.unpack(">I", data[at:at + 4]), data[at + 4:at + 8]
        body = data[at + 8:at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0] == zlib.crc32(kind + body)
        if kind == b"IHDR":
            width, height, depth, color, _, _, interlace = struct.unpack(">IIBBBBB", body)
            assert (depth, color, interlace) == (8, 0, 0)
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, width + 1).astype(int)
    picture = np.zeros((height, width), int)
    for y, (method, line) in enumerate(zip(lines[:, 0], lines[:, 1:])):
        above = picture[y - 1] if y else np.zeros(width, int)
        for x in range(width):
            left, up, corner = (picture[y, x - 1] if x else 0), above[x], (above[x - 1] if x else 0)
            estimate = left + up - corner
            paeth = min((left, up, corner), key=lambda value: abs(estimate - value))
            picture[y, x] = (line[x] + (0, left, up, (left + up) // 2, paeth)[method]) % 256
    return picture


class Info(CliTest):
    def info(self, *arguments):
        return json.loads(self.succeed("info", *arguments, "--json", "--bandwidth", 100).out)

    def check_against_scipy(self, data, matrix):
        coo = matrix.tocoo()  # explicit zeros, too
        rows, columns = coo.row.astype(np.int64), coo.col.astype(np.int64)
        lengths = np.diff(matrix.indptr)
        self.assertEqual((data["rows"], data["cols"], data["nnz"]), (*matrix.shape, matrix.nnz))
        for share, length in data["row_lengths"]["quantiles"].items():
            self.assertEqual(length, np.sort(lengths)[max(0, int(np.ceil(float(share) * lengths.size)) - 1)])
        for b in data["row_lengths"]["histogram"]:
            self.assertEqual(b["rows"], np.count_nonzero((lengths >= b["from"]) & (lengths <= b["to"])))
        self.assertEqual(sum(b["rows"] for b in data["row_lengths"]["histogram"]), matrix.shape[0])
        starts = np.r_[True, (np.diff(rows) != 0) | (np.diff(columns) != 1)] if rows.size else np.zeros(0, bool)
        runs = np.diff(np.r_[np.flatnonzero(starts), rows.size])
        self.assertEqual(data["runs"]["count"], runs.size)
        self.assertEqual(data["runs"]["entries_in_runs"], runs[runs > 1].sum())
        for b in data["runs"]["histogram"]:
            self.assertEqual(b["runs"], np.count_nonzero((runs >= b["from"]) & (runs <= b["to"])))
        pattern = data["pattern"]
        self.assertEqual(pattern["empty_rows"], np.count_nonzero(lengths == 0))
        self.assertEqual(pattern["empty_columns"], matrix.shape[1] - np.unique(columns).size)
        self.assertEqual(pattern["lower_bandwidth"], max(0, (rows - columns).max(initial=0)))
        self.assertEqual(pattern["upper_bandwidth"], max(0, (columns - rows).max(initial=0)))
        self.assertEqual(pattern["diagonals"], np.unique(columns - rows).size)
        for block in data["blocks"]:
            b = block["size"]
            _, counts = np.unique((rows // b) * matrix.shape[1] + columns // b, return_counts=True)
            self.assertEqual((block["occupied"], block["full"]), (counts.size, np.count_nonzero(counts == b * b)))
        for type, bits in (("f32", 5), ("f64", 4)):
            self.assertAlmostEqual(data["locality"][type]["stored"], locality(columns, bits), places=12)

    def check_symmetry(self, symmetry, matrix):
        entries = {(i, j): v for i, j, v in zip(*sp.find(matrix)) if i != j}
        self.assertEqual(symmetry["off_diagonal"], len(entries))
        self.assertEqual(symmetry["mirrored"], sum((j, i) in entries for i, j in entries))
        self.assertEqual(symmetry["equal"], sum(entries.get((j, i)) == v for (i, j), v in entries.items()))

    def test_one_is_singular(self):
        self.write("one.mtx", "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2\n")
        self.assertIn("1 × 1, 1 nonzero\n", self.succeed("info", "one.mtx").out)
        self.assertIn("1 × 1, 1 nonzero, ", self.succeed("partition", "one.mtx", "one.h5", "--parts", 1).out)
        self.assertIn("1 nonzero, 1 partition)", self.succeed("verify-file", "one.h5").out)

    def test_matrices_of_finite_elements(self):
        for name in ("convection", "stokes"):
            with self.subTest(name=name):
                matrix = fem_matrix(name)
                data = self.info(DATA / f"{name}.mtx.gz")
                self.check_against_scipy(data, matrix)
                order = np.argsort(-np.diff(matrix.indptr), kind="stable")
                self.assertAlmostEqual(data["locality"]["f32"]["sorted_rows"], locality(matrix[order].indices, 5), places=12)
                folded, width = data["locality"]["f32"]["folded"], int(np.ceil(matrix.nnz / matrix.shape[0]))
                place = (np.arange(matrix.nnz) - np.repeat(matrix.indptr[:-1], np.diff(matrix.indptr))) % width
                columns = matrix.indices[np.argsort(place, kind="stable")]  # the first of every piece, then the second …
                self.assertEqual(folded["width"], width)
                self.assertAlmostEqual(folded["locality"], locality(columns, 5), places=12)
                rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
                starts = np.r_[True, (np.diff(rows) != 0) | (np.diff(matrix.indices) != 1)]
                lengths = np.diff(np.r_[np.flatnonzero(starts), rows.size])
                single = lengths[np.cumsum(starts) - 1] == 1
                columns = matrix.indices[np.lexsort((np.arange(rows.size), single, rows))]
                self.assertAlmostEqual(data["locality"]["f32"]["runs_first"], locality(columns, 5), places=12)
                self.assertEqual(data["left_out"], [])

    def test_a_rectangular_matrix_has_no_symmetry(self):
        matrix = sp.random(40, 90, density=0.1, format="csr", random_state=1)
        sp.save_npz(self.path("a.npz"), matrix)
        data = self.info("a.npz")
        self.check_against_scipy(data, matrix)
        self.assertNotIn("symmetry", data)

    def test_symmetry(self):
        matrix = sp.random(60, 60, density=0.1, format="csr", random_state=2)
        symmetric = (matrix + matrix.T).tocsr()
        half = symmetric.copy()
        half.data[::3] += 1
        for one, says in ((matrix, "none; "), (symmetric, "pattern and values\n"), (half, "pattern; ")):
            sp.save_npz(self.path("a.npz"), one)
            self.check_symmetry(self.info("a.npz")["symmetry"], one)
            self.assertRegex(self.succeed("info", "a.npz").out, rf"symmetry +{says}")

    def test_streaming_tells_the_same_and_says_what_it_leaves_out(self):
        self.succeed("generate", "rmat", "--scale", 9, "a.h5", "--parts", 2)
        whole, streamed = self.info("a.h5"), self.info("a.h5", "--stream")
        (reason,) = streamed["left_out"]
        self.assertIn("--stream", reason)
        for lacking in ("formats", "bandwidth", "fewest_bytes"):
            self.assertIn(lacking, whole)
            self.assertNotIn(lacking, streamed)
        for type in ("f32", "f64"):
            for order in ("sorted_rows", "folded", "runs_first", "advised"):
                self.assertNotIn(order, streamed["locality"][type])
                del whole["locality"][type][order]
        for same in ("row_lengths", "runs", "pattern", "blocks", "values", "symmetry", "locality", "partitions"):
            self.assertEqual(whole[same], streamed[same], same)

    def test_quick_reads_no_entries(self):
        self.succeed("generate", "poisson", "--n", 5, "a.h5", "--parts", "2,3")
        data = self.info("a.h5", "--quick")
        self.assertEqual([p["parts"] for p in data["partitions"]], [2, 3])
        self.assertEqual(data["row_lengths"]["max"], 27)
        self.assertNotIn("pattern", data)
        self.assertIn("--quick", data["left_out"][0])

    def test_formats_and_their_predicted_times(self):
        data = self.info("poisson:n=6")
        csr = {f["type"]: f for f in data["formats"] if f["name"] == "csr"}
        self.assertEqual(csr["f64"]["bytes"], 4 * 217 + 12 * 4096)
        self.assertEqual(csr["f32"]["bytes"], 4 * 217 + 8 * 4096)
        self.assertAlmostEqual(csr["f64"]["seconds"], (csr["f64"]["bytes"] + 8 * 432) / 100e9, places=15)
        self.assertEqual(data["bandwidth"], {"bytes_per_second": 100e9, "of": "given"})
        known = {f["name"] for f in data["formats"] if "refused" not in f}
        for type in ("f32", "f64"):
            self.assertIn(data["fewest_bytes"][type], known)
        self.assertEqual(data["recommended"]["format"], data["fewest_bytes"]["f64"])
        self.assertIn("textbooks would take ell", data["recommended"]["reason"])
        self.assertIn("rows of about equal length", data["recommended"]["reason"])
        text = self.succeed("info", "poisson:n=6").out
        for word in ("216 × 216", "fewest bytes in f64", "Recommended format\n  packed", "copy bandwidth measured on", "█"):
            self.assertIn(word, text)

    def test_formats_that_do_not_suit_the_matrix_are_refused_with_the_reason(self):
        matrix = sp.eye(30000, format="lil")
        matrix[0] = 1
        sp.save_npz(self.path("a.npz"), matrix.tocsr())
        refused = {f["name"]: f["refused"] for f in self.info("a.npz")["formats"] if "refused" in f}
        self.assertIn("times as much as CSR", refused["ell"])
        self.assertNotIn("csr", refused)
        self.assertRegex(self.succeed("info", "a.npz").out, r"ell +f64 +refused +\S+ .B would be \d+ times as much as CSR")
        all_formats = self.succeed("convert", "a.npz", "--format", "all", "--backend", "host").out
        self.assertRegex(all_formats, r"ell +refused: .*does not suit this matrix")
        self.fail_with(RESOURCES, "convert", "a.npz", "--format", "ell", "--backend", "host", says="does not suit")

    def test_empty_matrices(self):
        for shape in ((0, 0), (0, 5), (5, 0), (7, 7)):
            sp.save_npz(self.path("a.npz"), sp.csr_matrix(shape))
            data = self.info("a.npz")
            self.assertEqual((data["rows"], data["cols"], data["nnz"]), (*shape, 0))
            self.assertIn("no entries", self.succeed("info", "a.npz").out)

    def test_mistakes(self):
        self.fail_with(USAGE, "info", "poisson:n=4", "--spy", "a.svg", says="ending in .png")
        self.fail_with(USAGE, "info", "poisson:n=4", "--spy", "a.png", "--spy-size", 4, says="from 16 to 8192")
        self.fail_with(USAGE, "info", "poisson:n=4", "--spy", "a.png", "--quick", says="--quick")
        self.fail_with(USAGE, "info", "poisson:n=4", "--bandwidth", 0, says="greater than 0")
        self.fail_with(INPUT, "info", "none.mtx", says=["none.mtx", "no such file"])


class Spy(CliTest):
    def picture(self, matrix, size, *arguments):
        sp.save_npz(self.path("a.npz"), sp.csr_matrix(matrix))
        result = self.call("info", "a.npz", "--spy", "a.png", "--spy-size", size, *arguments)
        if "libpng was not found" in result.err:
            self.skipTest("the program was built without libpng")
        self.assertEqual(result.code, 0, result)
        return read_gray_png(self.path("a.png"))

    def test_small_matrices_are_drawn_in_squares(self):
        matrix = np.array([[1.0, 0, 2], [0, 3, 0]])
        picture = self.picture(matrix, 16)
        self.assertEqual(picture.shape, (10, 15))
        np.testing.assert_array_equal(picture, np.where(np.kron(matrix, np.ones((5, 5))) > 0, 0, 255))

    def test_shade_is_the_logarithm_of_the_nonzeros_of_a_pixel(self):
        matrix = sp.random(700, 350, density=0.02, format="csr", random_state=3).toarray()
        matrix[:70, :70] = 1
        for arguments in ((), ("--stream",)):
            picture = self.picture(matrix, 70, *arguments)
            self.assertEqual(picture.shape, (70, 35))
            counts = (matrix != 0).reshape(70, 10, 35, 10).sum(axis=(1, 3))
            wanted = 255 * 0.75 * (1 - np.log(np.maximum(counts, 1)) / np.log(100))
            np.testing.assert_allclose(picture, np.where(counts > 0, wanted, 255), atol=0.51)

    def test_a_matrix_without_entries_is_white(self):
        self.assertTrue(np.all(self.picture(sp.csr_matrix((50, 50)), 50) == 255))

    def test_the_picture_is_whole_or_not_there(self):
        self.picture(np.eye(3), 16)
        self.path("a.png").unlink()
        self.fail_with(INPUT, "info", "poisson:n=200", "--spy", "none/a.png", limit=10, says=["none", "create it first"])


@unittest.skipUnless(importlib.util.find_spec("matplotlib"), "this Python has no matplotlib")
class Plot(CliTest):
    def plot(self, *arguments):
        return run([sys.executable, ROOT / "tools" / "plots" / "plot_matrix.py", *arguments], self.directory)

    def test_charts_of_row_and_run_lengths(self):
        self.write("a.json", self.succeed("info", "elasticity:n=5", "--json").out)
        for name in ("a.svg", "a.png"):
            result = self.plot("a.json", "--output", name)
            self.assertEqual(result.code, 0, result)
            self.assertGreater(self.path(name).stat().st_size, 1000)

    def test_a_report_without_runs(self):
        self.write("a.json", self.succeed("info", "elasticity:n=5", "--quick", "--json").out)
        self.assertIn("without --quick", self.plot("a.json", "--output", "a.svg").err)


if __name__ == "__main__":
    unittest.main()
