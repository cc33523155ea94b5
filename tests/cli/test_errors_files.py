"""Names of files: missing ones, directories, pipes, and outputs that would replace what is read."""

import ctypes
import os
import subprocess
import unittest

import scipy.sparse as sp

from support import INPUT, LIMIT, OK, RESOURCES, USAGE, CliTest, DATA, write_binsparse

HEADER = "%%MatrixMarket matrix coordinate real general\n"
SMALL = HEADER + "2 2 2\n1 1 1.5\n2 2 2.5\n"


class Files(CliTest):
    def test_missing_file_with_the_nearest_name(self):
        self.write("bar.mtx", SMALL)
        write_binsparse(self.path("bar.h5"), sp.eye(3))
        self.fail_with(INPUT, "partition", "baar.mtx", "o.h5", says=["baar.mtx", "no such file", "did you mean bar.mtx?"])
        for command in ("info", "verify-file", "multiply"):
            self.fail_with(INPUT, command, "baar.h5", says=["baar.h5", "no such file", "did you mean bar.h5?"])
        self.fail_with(INPUT, "generate", "elasticity", "--mesh", "none.h5", "o.h5", says=["none.h5", "no such file"])

    def test_missing_text_is_not_taken_for_a_matrix(self):
        self.write("bar.mtx", SMALL)
        self.fail_with(INPUT, "multiply", "baar.mtx", says=["baar.mtx: there is no such file", "did you mean bar.mtx?"])
        self.fail_on_every_rank(INPUT, "multiply", "none.npz", ranks=2, says="none.npz: there is no such file")

    def test_missing_file_on_every_rank(self):
        self.fail_on_every_rank(INPUT, "multiply", "none.h5", says=["none.h5", "no such file", "check the path"])

    def test_directory_in_place_of_a_file(self):
        self.path("folder.h5").mkdir()
        self.fail_with(INPUT, "partition", self.directory, "o.h5", says="directory")
        self.fail_with(INPUT, "multiply", "folder.h5", says="directory")
        self.fail_with(INPUT, "partition", DATA / "stokes.mtx.gz", "folder.h5", says="directory")

    def test_wrong_suffix(self):
        self.write("bar.mxt", "no matrix\n")
        self.fail_with(INPUT, "partition", "bar.mxt", "o.h5", says=[".mxt", "did you mean .mtx?"])
        for name in ("bar.txt", "bar.csv", "bar"):
            self.write(name, "no matrix\n")
            result = self.fail_with(INPUT, "partition", name, "o.h5", says=[name, ".mtx, .mtx.gz, .mtx.bz2", ".npz"])
            self.assertNotIn("did you mean", result.err)
            self.fail_with(INPUT, "multiply", name, says=[name, ".h5", ".mtx, .mtx.gz, .mtx.bz2"])
        self.fail_with(USAGE, "convert", "poisson:n=3", "o.txt", says=".h5, .mtx, .npz")

    def test_long_names(self):
        for length in (200, 248, 255):
            for suffix in (".h5", ".mtx", ".npz"):
                name = "n" * (length - len(suffix)) + suffix
                self.succeed("convert", "poisson:n=3", name)
                self.assertEqual(self.files(), [name])
                self.path(name).unlink()
        umlauts = "ü" * 126 + ".h5"
        self.succeed("generate", "poisson", "--n", 3, umlauts)
        self.succeed("multiply", umlauts, "--output", "y" * 252 + ".h5", "--json", "r" * 250 + ".json")
        self.fail_with(INPUT, "generate", "poisson", "--n", 3, "n" * 253 + ".h5", says=["255 bytes", "shorter"])

    def test_output_that_is_no_shard_file_spares_the_input(self):
        self.write("bar.mtx", SMALL)
        for output in ("bar.mtx", "", "o.txt"):
            self.fail_with(USAGE, "partition", "bar.mtx", output, says=".h5")
        self.assertEqual(self.path("bar.mtx").read_text(), SMALL)

    def test_results_spare_the_matrix(self):
        self.succeed("generate", "poisson", "--n", 4, "a.h5")
        before = self.path("a.h5").read_bytes()
        for option, name in (("--output", "a.h5"), ("--output", "./a.h5:/y"), ("--output", "a.h5:y")):
            self.fail_on_every_rank(USAGE, "multiply", "a.h5", option, name, ranks=2, says=[name, "matrix itself"])
        self.fail_on_every_rank(USAGE, "multiply", "a.h5", "--json", "a.h5", ranks=2, says="a.h5 is the name of a matrix")
        for option in ("--csv", "--html"):
            self.fail_on_every_rank(USAGE, "bench", "scaling", "a.h5", option, "a.h5", ranks=2, says="a.h5 is the input itself")
        os.symlink("a.h5", self.path("link"))
        self.fail_with(USAGE, "bench", "kernels", "a.h5", "--json", "link", says="link is the input itself")
        self.fail_with(USAGE, "info", "a.h5", "--json", "link", says="link is the matrix itself")
        self.assertEqual(self.path("a.h5").read_bytes(), before)

    def test_results_spare_vectors_reports_and_each_other(self):
        self.succeed("multiply", "poisson:n=4", "--output", "x.npy")
        self.succeed("bench", "scaling", "poisson:n=4", "--iterations", 3, "--json", "s.json")
        before = [self.path(name).read_bytes() for name in ("x.npy", "s.json")]
        self.fail_with(USAGE, "multiply", "poisson:n=4", "--x", "x.npy", "--json", "x.npy", says="x.npy is x itself")
        self.fail_with(USAGE, "predict", "s.json", "--json", "./s.json", says="s.json is the report itself")
        self.fail_with(USAGE, "predict", "s.json", "--json", "x.npy", says="a file of this name, and it is a NumPy array")
        self.fail_with(USAGE, "multiply", "poisson:n=4", "--output", "o.npy", "--json", "o.npy", says="o.npy is named for two")
        self.fail_with(USAGE, "bench", "scaling", "poisson:n=4", "--csv", "o", "--html", "o", says="o is named for two")
        self.assertEqual([self.path(name).read_bytes() for name in ("x.npy", "s.json")], before)
        self.assertFalse(self.path("o.npy").exists() or self.path("o").exists())

    def test_pipes_are_not_read(self):
        self.write("a.mtx", SMALL)
        for name in ("pipe.mtx", "pipe.mtx.gz", "pipe.npz", "pipe.npy", "pipe.json", "pipe.txt", "P_A.txt",
                     "P_graph_indicator.txt"):
            os.mkfifo(self.path(name))
        for name in ("pipe.mtx", "pipe.mtx.gz", "pipe.npz"):
            self.fail_with(INPUT, "partition", name, "o.h5", says=[name, "FIFO"])
        self.succeed("partition", "a.mtx", "a.h5")
        self.fail_with(INPUT, "multiply", "a.h5", "--x", "pipe.npy", says=["pipe.npy", "FIFO"])
        self.fail_with(INPUT, "predict", "pipe.json", says=["pipe.json", "FIFO"])
        for name in ("pipe.txt", "pipe.npz", "P"):
            self.fail_with(INPUT, "batch", name, says="FIFO")

    def test_links_in_a_circle_stay(self):
        os.symlink("b.h5", self.path("a.h5"))
        os.symlink("a.h5", self.path("b.h5"))
        self.fail_with(INPUT, "generate", "poisson", "--n", 3, "a.h5", says=["a.h5", "circle"])
        self.assertTrue(self.path("a.h5").is_symlink())

    def test_pipes_take_text_and_no_hdf5(self):
        for name in ("p.mtx", "p.h5", "p.npz"):
            os.mkfifo(self.path(name))
        with open(self.path("read.mtx"), "w") as text:
            reader = subprocess.Popen(["cat", "p.mtx"], cwd=self.directory, stdout=text)
            self.succeed("convert", "poisson:n=3", "p.mtx")
            self.assertEqual(reader.wait(LIMIT), OK)
        self.succeed("convert", "poisson:n=3", "file.mtx")
        self.assertEqual(self.path("read.mtx").read_text(), self.path("file.mtx").read_text())
        for name in ("p.h5", "p.npz"):
            self.fail_with(USAGE, "convert", "poisson:n=3", name, says=[name, "pipe"])

    def test_empty_names(self):
        self.fail_with(INPUT, "multiply", "", says="empty")
        self.fail_with(INPUT, "multiply", "poisson:n=3", "--x", "", says="empty")

    def test_misspelt_words_for_vectors(self):
        for word, near in (("one", "ones"), ("Ones", "ones"), ("zero", "zeros"), ("1", "")):
            self.fail_with(INPUT, "multiply", "poisson:n=3", "--x", word, says=[f"{word}: there is no such file", "ones, zeros or random",
                                                                              f"did you mean {near}?" if near else ""])
        self.fail_with(INPUT, "solve", "poisson:n=3", "--b", "Random", says="did you mean random?")

    def test_verification_in_place_of_a_matrix(self):
        self.fail_with(USAGE, "multiply", "poisson:n=4", "--verify", "sampled", says="write --verify=sampled")

    def test_y0_without_beta(self):
        self.fail_with(USAGE, "multiply", "poisson:n=3", "--y0", "ones", says=["y0 counts only", "(--beta)"])

    def test_output_may_replace_the_input(self):
        self.succeed("generate", "poisson", "--n", 4, "a.h5")
        self.succeed("partition", "a.h5", "a.h5", "--parts", 3)
        self.succeed("verify-file", "a.h5")
        self.assertEqual(self.files(), ["a.h5"])

    def test_missing_output_directory_is_said_before_the_work(self):
        for arguments in (["partition", "none.mtx", "none/o.h5"], ["generate", "poisson", "--n", 1000, "none/o.h5"],
                          ["multiply", "poisson:n=300", "--output", "none/y.h5"],
                          ["multiply", "poisson:n=4", "--json", "none/r.json"]):
            result = self.fail_with(INPUT, *arguments, limit=10, says=["none", "create it first"])
            self.assertEqual(result.out, "")
        self.fail_on_every_rank(INPUT, "multiply", "poisson:n=4", "--output", "none/y.h5", says="none/y.h5")

    def test_directory_that_cannot_be_written(self):
        if os.geteuid() == 0:
            locked = "/proc"  # root may write everywhere else
        else:
            locked = self.path("locked")
            locked.mkdir(mode=0o555)
        self.fail_with(RESOURCES, "generate", "poisson", "--n", 4, f"{locked}/o.h5", says=f"{locked}/o.h5")
        self.fail_on_every_rank(RESOURCES, "multiply", "poisson:n=4", "--output", f"{locked}/y.npy", says=f"{locked}/y.npy")
        self.fail_on_every_rank(RESOURCES, "multiply", "poisson:n=4", "--json", f"{locked}/r.json", says=f"{locked}/r.json")


    def test_directory_without_permission(self):
        libc = ctypes.CDLL(None)
        drop, override_permissions = 24, 1  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE: so that root needs permissions, too
        locked = self.path("locked")
        locked.mkdir(mode=0o555)
        options = {"preexec_fn": lambda: libc.prctl(drop, override_permissions, 0, 0, 0)} if os.geteuid() == 0 else {}
        if self.call("generate", "poisson", "--n", 4, "locked/o.h5", **options).code == OK:
            self.skipTest("root keeps all rights here")
        for name in ("locked/o.h5", f"{locked}/o.h5"):
            self.fail_with(RESOURCES, "generate", "poisson", "--n", 4, name, **options,
                           says=[f"cannot write {name}: no file can be made in the directory {locked} (Permission denied)",
                                 "another directory"])


if __name__ == "__main__":
    unittest.main()
