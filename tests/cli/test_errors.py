"""Mistakes and damage: one line that names what is wrong and what to do, the right exit code on every rank, nothing left."""

import ctypes
import gzip
import os
import re
import shlex
import signal
import subprocess
import time
import unittest

import h5py
import numpy as np
import scipy.io
import scipy.sparse as sp

from support import (INPUT, LIMIT, OK, PROGRAM, RANK_LOST, RESOURCES, ROOT, USAGE, CliTest, DATA, address_space_limit, environment,
                     file_size_limit, run, write_binsparse, write_vector)

HEADER = "%%MatrixMarket matrix coordinate real general\n"
SMALL = HEADER + "2 2 2\n1 1 1.5\n2 2 2.5\n"


class Launchers(CliTest):
    """Launchers of another MPI start processes that are each alone."""

    def test_a_world_of_one_that_was_started_several_times_is_refused(self):
        self.write("a.mtx", SMALL)
        commands = {"multiply": ("--output", "y.npy"), "solve": ("--output", "x.npy"), "eigen": ("--vectors", "v.npy"),
                    "pagerank": ("--output", "s.npy"), "batch": ()}
        for variables in ({"PMI_SIZE": "2"}, {"PMI_SIZE": "2", "PMI_RANK": "0", "PMI_FD": "9"}, {"MPI_LOCALNRANKS": "2"},
                          {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"},
                          {"SLURM_STEP_NUM_TASKS": "2", "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": "0"}):
            for command, output in commands.items() if "PMI_SIZE" in variables else [("multiply", commands["multiply"])]:
                self.fail_with(USAGE, command, "a.mtx", *output, env=variables,
                               says=["started 2 processes", "each is alone", " -n 2 ", f"{command} a.mtx"])
        self.fail_with(USAGE, "bench", "scaling", "a.mtx", env={"PMI_SIZE": "2"}, says="each is alone")
        self.fail_with(USAGE, "convert", "a.mtx", "b.npz", env={"PMI_SIZE": "2"}, says="without mpirun")

    def test_allocations_and_nested_launchers_are_not(self):
        self.write("a.mtx", SMALL)
        for variables in ({"SLURM_NTASKS": "8", "SLURM_JOB_ID": "7", "SLURM_PROCID": "0"},
                          {"SLURM_NTASKS": "8", "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "1"},
                          {"PMI_SIZE": "1", "PMI_RANK": "0"}):
            self.succeed("multiply", "a.mtx", "--backend", "host", env=variables)
            self.assertIn('"ranks"', self.succeed("multiply", "a.mtx", "--backend", "host", "--json", ranks=2, env=variables).out)


class DifferentRanks(CliTest):
    """Ranks that were given different options or files: a result would belong to none of them."""

    def refused(self, first, second, *says, prepare=()):
        before = self.files()
        result = run(["mpirun", *prepare, "-n", "1", PROGRAM, *first, ":", *prepare, "-n", "2", PROGRAM, *second], self.directory)
        self.assertEqual(result.code, USAGE, result)
        self.assertEqual(len(result.messages), 1, result)
        for text in says:
            self.assertIn(text, result.messages[0], result)
        self.assertEqual(self.files(), before, result)

    def test_options(self):
        self.write("a.mtx", SMALL)
        np.save(self.path("x.npy"), np.array([1.0, 2.0]))
        np.save(self.path("z.npy"), np.array([5.0, 7.0]))
        multiply = ("multiply", "a.mtx", "--backend", "host", "--output", "y.npy")
        self.refused([*multiply, "--x", "x.npy"], [*multiply, "--x", "z.npy"], "rank 1", "--x is z.npy", "--x is x.npy")
        self.refused([*multiply], [*multiply, "--alpha", "2"], "--alpha is 2", "there is no --alpha")
        self.refused([*multiply, "--alpha", "2"], [*multiply], "there is no --alpha")
        for command, option in (("solve", "--rtol"), ("eigen", "--tolerance"), ("pagerank", "--damping")):
            one = (command, "a.mtx", "--backend", "host")
            self.refused([*one, option, "0.5"], [*one, option, "0.25"], f"{option} is 0.25", f"{option} is 0.5")
        self.refused([*multiply], ["solve", "a.mtx", "--output", "y.npy"], "the command is shardmat solve")
        self.refused(["batch", "a.mtx", "--rhs", "2"], ["batch", "a.mtx", "--rhs", "3"], "--rhs is 3")

    def test_files_of_one_name(self):
        for folder, last in (("one", "2.5"), ("two", "3.5")):
            self.path(folder).mkdir()
            self.write(f"{folder}/a.mtx", SMALL.replace("2.5", last))
        command = [PROGRAM, "multiply", "a.mtx", "--backend", "host", "--output", "y.npy"]
        result = run(["mpirun", "-wdir", self.path("one"), "-n", "1", *command, ":", "-wdir", self.path("two"), "-n", "1", *command],
                     self.directory)
        self.assertEqual(result.code, USAGE, result)
        self.assertIn("matrix names different files: a.mtx has", result.messages[0])
        self.assertFalse(self.path("one/y.npy").exists())
        # A file that only one rank has, and other files to write, are no difference.
        np.save(self.path("one/x.npy"), np.array([1.0, 2.0]))
        np.save(self.path("one/y.npy"), np.zeros(2))
        np.save(self.path("two/y.npy"), np.ones(2))
        self.write("two/a.mtx", SMALL)
        result = run(["mpirun", "-wdir", self.path("one"), "-n", "1", *command, ":", "-wdir", self.path("two"), "-n", "1", *command],
                     self.directory)
        self.assertEqual(result.code, OK, result)

    def test_every_option_that_names_a_file_to_write(self):
        """What lies there before is no input. The program knows these options by name; the help tells them by their first words."""
        source = (ROOT / "tools" / "given_options.cpp").read_text()
        known = set(re.findall(r'"([^"]+)"', re.search(r"kOutputs\[\] = \{(.*?)\}", source, re.DOTALL).group(1)))
        found = set()
        benches = [f"bench {name}" for name in re.findall(r"^  (\w+)  ", self.succeed("help", "bench").out, re.MULTILINE)]
        for command in ["multiply", "solve", "eigen", "pagerank", "batch", "partition", "generate", "convert", "info", "predict",
                        *benches]:
            text = re.sub(r"\n {10,}", " ", self.succeed("help", *command.split()).out)
            for name, meaning in re.findall(r"^  (?:-\w,)?(--[\w-]+|output)[^\n]*?  (\S[^\n]*)$", text, re.MULTILINE):
                if re.match(r"(write|draw|save|store|append)\b.* FILE|write the batch|(shard )?file to write", meaning):
                    found.add(name)
        self.assertTrue({"output", "--output", "--json", "--plot", "--save", "--vectors", "--spy", "--csv", "--html"} <= found, found)
        self.assertEqual(found - known - {"--values"}, set())  # --values FILE: the values to write


class StandardStreams(CliTest):
    """Closed, or on a full disk: the exit code of the same command is kept, or 4 if its report is lost."""

    def code(self, streams, *arguments, ranks=0):
        program = ("mpirun", "-n", str(ranks), PROGRAM) if ranks else (PROGRAM,)
        command = f"ulimit -c 0; exec {shlex.join(map(str, (*program, *arguments)))} {streams}"
        return subprocess.run(["bash", "-c", command], cwd=self.directory, env=environment(), timeout=LIMIT,
                              stdin=subprocess.DEVNULL, capture_output=True).returncode

    def test_messages_that_cannot_be_written_change_no_exit_code(self):
        self.write("a.mtx", SMALL)
        for streams in ("2>&-", "2>/dev/full"):
            for wanted, command in ((INPUT, ("info", "none.mtx")), (INPUT, ("multiply", "none.mtx")), (USAGE, ("solve", "--foo")),
                                    (OK, ("multiply", "a.mtx")), (7, ("solve", "a.mtx", "--max-iterations", "0")),
                                    (INPUT, ("client", "status", "--state", "none")), (INPUT, ("bench", "kernels", "none.h5")),
                                    (USAGE, ("serve", "--foo")), (INPUT, ("eigen", "none.h5")), (INPUT, ("pagerank", "none.h5"))):
                with self.subTest(streams=streams, command=command):
                    undisturbed = self.code("", *command)
                    self.assertIn(undisturbed, (wanted, *([RESOURCES, RANK_LOST] if command[0] == "client" else [])))
                    self.assertEqual(self.code(streams, *command), undisturbed)
        for wanted, command in ((INPUT, ("multiply", "none.mtx")), (OK, ("multiply", "a.mtx"))):
            self.assertEqual(self.code("2>/dev/full", *command, ranks=2), wanted)

    def test_reports_that_cannot_be_written_are_errors_of_the_disk(self):
        self.write("a.mtx", SMALL)
        for streams in (">&-", ">&- 2>&-", "<&- >&- 2>&-", ">/dev/full", ">/dev/full 2>/dev/full"):
            for command in (("info", "a.mtx"), ("multiply", "a.mtx"), ("solve", "a.mtx", "--json"), ("generate", "poisson", "--n", "3", "p.h5"),
                            ("--version",), ("help", "solve")):
                with self.subTest(streams=streams, command=command):
                    self.assertIn(self.code(streams, *command), (OK, RESOURCES))
            self.assertEqual(self.code(streams, "info", "none.mtx"), INPUT)

    def test_a_file_does_not_take_the_place_of_a_closed_stream(self):
        self.write("a.mtx", SMALL)
        self.assertIn(self.code("<&- >&- 2>&-", "convert", "a.mtx", "b.mtx"), (OK, RESOURCES))
        np.testing.assert_array_equal(scipy.io.mmread(str(self.path("b.mtx"))).toarray(), [[1.5, 0], [0, 2.5]])
        self.assertEqual(self.code("<&- 2>&-", "multiply", "a.mtx", "--x", "ones", "--output", "y.npy"), OK)
        np.testing.assert_array_equal(np.load(self.path("y.npy")), [1.5, 2.5])


class OtherNames(CliTest):
    def test_options_of_other_programs(self):
        for command, option, meant in (("solve", "--algorithm", "--solver"), ("solve", "--tol", "--rtol"), ("eigen", "--tol", "--tolerance"),
                                       ("solve", "--ksp_type", "--solver"), ("solve", "--maxiter", "--max-iterations"),
                                       ("eigen", "--nev", "--count"), ("eigen", "--solver", "--method")):
            self.fail_with(USAGE, command, "poisson:n=3", option, "1", says=[f"no option {option}", f"did you mean {meant}?"])
        self.fail_with(USAGE, "solve", "poisson:n=3", "--method", "gmres", says=["how rows are divided", "did you mean --solver gmres?"])


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
        self.fail_with(USAGE, "multiply", "poisson:n=3", "--y0", "ones", says=["--y0", "--beta"])

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


class Content(CliTest):
    def refuse(self, name, content, *says, code=INPUT):
        self.write(name, content)
        self.fail_with(code, "partition", name, "o.h5", says=[name, *says])

    def test_garbage(self):
        noise = np.random.default_rng(1).bytes(5000)
        self.refuse("noise.mtx", noise, "%%MatrixMarket")
        self.refuse("noise.mtx.gz", noise)
        self.refuse("noise.npz", noise)
        self.write("noise.h5", noise)
        self.fail_with(INPUT, "partition", "noise.h5", "o.h5", says="noise.h5")
        self.fail_on_every_rank(INPUT, "multiply", "noise.h5", says="noise.h5")

    def test_empty_files(self):
        for name in ("e.mtx", "e.mtx.gz", "e.npz", "e.h5"):
            self.refuse(name, b"", "" if name == "e.npz" or name == "e.h5" else f"{name}: the file is empty")

    def test_truncated_text(self):
        self.refuse("cut.mtx", HEADER + "3 3 3\n1 1 1.0\n2 2", "cut.mtx:2", "truncated")

    def test_truncated_gzip(self):
        data = (DATA / "stokes.mtx.gz").read_bytes()
        self.refuse("cut.mtx.gz", data[: len(data) // 2], "truncated")

    def test_damaged_gzip(self):
        data = bytearray((DATA / "stokes.mtx.gz").read_bytes())
        data[len(data) // 2] ^= 0xFF
        self.refuse("bad.mtx.gz", bytes(data))

    def test_line_count_that_lies(self):
        self.refuse("few.mtx", HEADER + "2 2 3\n1 1 1\n2 2 2\n", "few.mtx:2", "promises 3")
        self.refuse("many.mtx", HEADER + "2 2 1\n1 1 1\n2 2 2\n", "many.mtx:2", "promises 1")

    def test_index_out_of_range_names_the_line(self):
        self.refuse("out.mtx", HEADER + "% comment\n2 2 2\n1 1 1\n3 1 2\n", "out.mtx:5", "3")
        self.refuse("zero.mtx", HEADER + "2 2 1\n0 1 1\n", "zero.mtx:3")

    def test_nonfinite_values_need_permission(self):
        for value in ("nan", "inf", "-inf"):
            self.refuse("nan.mtx", HEADER + f"2 2 2\n1 1 1\n2 2 {value}\n", "nan.mtx:4", "not finite (--allow-nonfinite)")
        self.succeed("partition", "nan.mtx", "o.h5", "--allow-nonfinite")

    def test_complex_and_array_are_refused_by_name(self):
        self.refuse("c.mtx", "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n", "complex")
        self.refuse("a.mtx", "%%MatrixMarket matrix array real general\n1 1\n1\n", "array")

    def test_hdf5_without_a_matrix(self):
        write_vector(self.path("x.h5"), np.ones(3))
        self.fail_with(INPUT, "info", "x.h5", says=["x.h5", "binsparse"])

    def kinds(self):
        """One file of each kind."""
        self.succeed("generate", "poisson", "--n", 3, "matrix.h5")
        self.succeed("batch", "molecules:count=3", "--save", "batch.h5", "--iterations", 0)
        with h5py.File(self.path("mesh.h5"), "w") as file:
            file["points"], file["tetrahedra"] = np.eye(4, 3), np.arange(4)[None]
        with h5py.File(self.path("vectors.h5"), "w") as file:
            file["x"], file["loads"] = np.ones(27), np.ones(27)
        np.savez(self.path("graphs.npz"), graph_ptr=[0, 1], indptr=[0, 0], indices=np.zeros(0, int))
        sp.save_npz(self.path("matrix.npz"), sp.identity(3, format="csr"))
        self.succeed("convert", "matrix.h5", "matrix.mtx")

    def test_files_of_another_kind_are_told_what_reads_them(self):
        self.kinds()
        for command in (["multiply"], ["info"], ["verify-file"], ["partition", "o.h5"], ["convert", "o.mtx"]):
            def refused(name, *says):
                self.fail_with(INPUT, command[0], name, *command[1:], says=[name, *says])
            refused("batch.h5", "a batch of small matrices, not one matrix", "shardmat batch batch.h5")
            refused("mesh.h5", "a mesh of tetrahedra, not a matrix", "shardmat generate elasticity --mesh mesh.h5")
            refused("vectors.h5", 'an HDF5 file with "/loads" and "/x" and no matrix', "'binsparse'", "partition/README.md")
            if command[0] != "verify-file":
                refused("graphs.npz", "a batch of graphs, not one matrix", "shardmat batch graphs.npz")
        self.fail_with(INPUT, "batch", "matrix.h5", says=["a matrix in a shard file, not a batch", "shardmat multiply matrix.h5"])
        self.fail_with(INPUT, "batch", "mesh.h5", says=["a mesh of tetrahedra, not a batch", "--mesh mesh.h5"])
        self.fail_with(INPUT, "batch", "vectors.h5", says=['"/loads" and "/x" and no batch', "--save"])
        for name in ("matrix.mtx", "matrix.npz"):
            self.fail_with(INPUT, "batch", name, says=[name, "one matrix, not a batch", f"shardmat multiply {name}"])
        self.fail_on_every_rank(INPUT, "multiply", "batch.h5", ranks=2, says="shardmat batch batch.h5")

    def test_other_files_are_replaced_only_by_force(self):
        self.kinds()
        self.write("text.h5", "my notes\n")
        self.write("o.mtx", "my notes\n")
        np.savez(self.path("arrays.npz"), a=np.ones(3))
        write_vector(self.path("array.mtx"), np.ones(3))
        for name in ("matrix.h5", "array.mtx", "arrays.npz"):
            self.write(self.path(name).stem + ".json", self.path(name).read_bytes())
        before = {name: self.path(name).read_bytes() for name in self.files()}
        there = "there is a file of this name, and it is "

        def refused(*arguments, says, **options):
            self.fail_with(USAGE, *arguments, says=[there + says], **options)
        for command in (["generate", "poisson", "--n", 3], ["partition", "matrix.mtx"], ["convert", "matrix.mtx"]):
            refused(*command, "vectors.h5", says='an HDF5 file with "/loads" and "/x"; name another file, or have this one replaced (--force)')
            refused(*command, "batch.h5", says="a batch of small matrices")
            refused(*command, "mesh.h5", says="a mesh of tetrahedra")
            refused(*command, "text.h5", says="something that is no HDF5 file")
        refused("convert", "matrix.h5", "graphs.npz", says="a batch of graphs")
        refused("convert", "matrix.h5", "arrays.npz", says="a zip archive")
        refused("convert", "matrix.h5", "array.mtx", says="a Matrix Market array")
        refused("convert", "matrix.h5", "o.mtx", says="something else than a .mtx file")
        for output, says in (("matrix.h5", "a matrix in a shard file"), ("vectors.h5", 'an HDF5 file with "/loads" and "/x"'),
                             ("vectors.h5:/x", "an HDF5 file"), ("matrix.mtx", "a Matrix Market matrix"), ("text.h5", "something")):
            refused("multiply", "poisson:n=3", "--output", output, says=says)
        refused("batch", "molecules:count=3", "--output", "mesh.h5", says="a mesh")
        refused("batch", "molecules:count=3", "--save", "matrix.h5", says="a matrix in a shard file")
        for name, says in (("matrix.json", "a matrix in a shard file; name another file, or remove it"),
                           ("array.json", "a Matrix Market array"), ("arrays.json", "a zip archive")):
            refused("multiply", "poisson:n=3", "--json", name, says=says)
        refused("bench", "scaling", "poisson:n=3", "--csv", "array.mtx", says="a Matrix Market array")
        self.fail_on_every_rank(USAGE, "multiply", "poisson:n=3", "--output", "vectors.h5", ranks=2, says=there)
        self.assertEqual({name: self.path(name).read_bytes() for name in self.files()}, before)

    def test_files_of_the_same_kind_are_replaced(self):
        self.kinds()
        write_binsparse(self.path("plain.h5"), sp.identity(3))
        self.write("empty.h5", "")
        self.write("empty.mtx", "")
        for name in ("matrix.h5", "plain.h5", "empty.h5"):
            self.succeed("generate", "poisson", "--n", 4, name)
            self.succeed("verify-file", name)
        for name in ("matrix.npz", "matrix.mtx", "empty.mtx"):
            self.succeed("convert", "poisson:n=3", name)
        self.succeed("batch", "molecules:count=4", "--save", "batch.h5", "--iterations", 0)
        for name in ("y.h5", "y.h5", "y.h5:/y", "z.h5:/case/1/y", "z.h5:/case/1/y", "y.npy", "y.npy", "y.mtx", "y.mtx"):
            self.succeed("multiply", "poisson:n=3", "--output", name, "--json", "report.json")
        self.fail_with(USAGE, "multiply", "poisson:n=3", "--output", "z.h5", says="z.h5")
        with h5py.File(self.path("z.h5"), "r+") as file:
            file["case/2"] = np.ones(3)
        self.fail_with(USAGE, "multiply", "poisson:n=3", "--output", "z.h5:/case/1/y", says="--force")
        self.succeed("multiply", "poisson:n=3", "--output", "z.h5:/case/1/y", "--force")
        self.succeed("generate", "poisson", "--n", 3, "vectors.h5", "--force")
        self.succeed("convert", "poisson:n=3", "mesh.h5", "--force")
        self.succeed("partition", "matrix.mtx", "batch.h5", "--force")
        self.succeed("batch", "molecules:count=3", "--save", "matrix.h5", "--output", "y.h5", "--force")

    def test_vectors_that_do_not_fit(self):
        write_vector(self.path("x.npy"), np.ones(5))
        self.fail_on_every_rank(INPUT, "multiply", "poisson:n=4", "--x", "x.npy", says=["x.npy", "5 entries", "64"])
        self.fail_on_every_rank(INPUT, "multiply", "poisson:n=4", "--y0", "x.npy", "--beta", 1, says=["x.npy", "5 entries", "64"])
        write_vector(self.path("x.h5"), np.ones(64), "loads")
        self.fail_with(INPUT, "multiply", "poisson:n=4", "--x", "x.h5", says=["x.h5", "/x", "/loads"])
        np.savetxt(self.path("x.txt"), np.ones((64, 2)))
        scipy.io.savemat(self.path("x.mat"), {"x": np.ones((64, 2))})
        for name in ("x2.npy", "x2.mtx", "x2.h5", "x.txt", "x.mat"):
            if "2" in name:
                write_vector(self.path(name), np.ones((64, 2)))
            failed = self.fail_with(INPUT, "multiply", "poisson:n=4", "--x", name, says=name)
            self.assertTrue(failed.messages[0].endswith("(--rhs 2)"), failed)
            self.succeed("multiply", "poisson:n=4", "--x", name, "--rhs", 2)
        self.fail_on_every_rank(INPUT, "solve", "poisson:n=4", "--b", "x2.npy", "--rhs", 3, says=["(64, 2)", "3 columns", "(--rhs 2)"])
        self.fail_with(INPUT, "pagerank", "poisson:n=4", "--seeds", "x2.npy", says="(--rhs 2)")


class Words(CliTest):
    def test_unknown_options_with_the_nearest(self):
        for arguments, says in ((["multiply", "a.h5", "--itertions", 3], "--iterations"), (["partition", "--part=3", "a", "b.h5"], "--parts"),
                                (["generate", "poisson", "--sede", 3, "o.h5"], "--seed"), (["info", "a.h5", "--jsn"], "--json")):
            self.fail_with(USAGE, *arguments, says=[f"did you mean {says}?", f"shardmat {arguments[0]}", "--help"])
        self.fail_on_every_rank(USAGE, "multiply", "a.h5", "--itertions", 3, says="--iterations")

    def test_unknown_subcommands_with_the_nearest(self):
        self.fail_with(USAGE, "partitoin", "a.mtx", "o.h5", says=["partitoin", "did you mean partition?"])
        self.fail_with(USAGE, "generate", "elastisity", "--n", 3, "o.h5", says=["elastisity", "did you mean elasticity?"])
        self.fail_with(USAGE, "generate", "zzz", "o.h5", says=["zzz", "elasticity", "rmat"])

    def test_unknown_generators_and_parameters(self):
        self.fail_on_every_rank(USAGE, "multiply", "elastcity:n=3", says="did you mean elasticity?")
        self.fail_on_every_rank(USAGE, "multiply", "elasticity:sede=3", says="did you mean seed?")
        self.fail_with(USAGE, "multiply", "elasticity:n=3,n=4", says="twice")

    def test_misspelt_variable(self):
        self.fail_on_every_rank(USAGE, "multiply", "poisson:n=3", "--backend", "host", env={"SHARDMAT_ISA": "sse9"},
                                says=["SHARDMAT_ISA=sse9", "choose baseline, avx2 or avx512"])
        least = self.json_of("multiply", "poisson:n=3", "--backend", "host", ranks=2, env={"SHARDMAT_ISA": "baseline"})
        self.assertEqual([rank["device"].split(", ")[-1] for rank in least["ranks"]], ["baseline"] * 2)
        self.fail_on_every_rank(USAGE, "multiply", "poisson:n=3", env={"SHARDMAT_HDF5_LINK": "follow"},
                                says=["SHARDMAT_HDF5_LINK ", "did you mean SHARDMAT_HDF5_LINKS?"])

    def test_numbers_out_of_range(self):
        for option, value, says in (("--iterations", -3, "whole number from 0"), ("--iterations", "1e6", "whole number"),
                                    ("--iterations", "99999999999999999999", "whole number"), ("--timeout", 0, "greater than 0"),
                                    ("--timeout", "inf", "greater than 0"), ("--alpha", "abc", "finite number"), ("--beta", "nan", "finite number"),
                                    ("--seed", -1, "whole number from 0")):
            self.fail_with(USAGE, "multiply", "poisson:n=3", option, value, says=[option, says, f'"{value}"'])
        for parts in ("0", "-1", "a", "3000000000", "2,0", "2.5"):
            self.fail_with(USAGE, "generate", "poisson", "--n", 3, "o.h5", "--parts", parts, says=["--parts", "whole number from 1"])

    def test_options_given_twice(self):
        self.fail_with(USAGE, "multiply", "poisson:n=3", "--iterations", 3, "--iterations", 4, says="--iterations was given more than once")

    def test_lists_with_empty_items(self):
        for parts in ("2,,3", "2,", ",2"):
            for given in (["--parts", parts], [f"--parts={parts}"]):
                self.fail_with(USAGE, "partition", "poisson:n=3", "o.h5", *given, says=["--parts", "empty item", f'"{parts}"'])

    def test_choices_are_listed(self):
        for option, known in (("--kernel", "csr"), ("--exchange", "allgather"), ("--method", "nnz"), ("--type", "f64"),
                              ("--mode", "power"), ("--backend", "cuda"), ("--sort", "local")):
            self.fail_with(USAGE, "multiply", "poisson:n=3", option, "zzz", says=["zzz", known])
        self.fail_with(USAGE, "multiply", "poisson:n=3", "--verify=zzz", says=["zzz", "sampled"])

    def test_option_in_place_of_a_file_name(self):
        self.fail_with(USAGE, "multiply", "poisson:n=3", "--output", "--verify", says="--verify")
        self.fail_with(USAGE, "multiply", "poisson:n=3", "--json", "", says="--json")

    def test_commands_of_one_process_refuse_mpirun(self):
        self.write("bar.mtx", SMALL)
        self.fail_on_every_rank(USAGE, "partition", "bar.mtx", "o.h5", says=["partition", "without mpirun"])

    def test_the_option_behind_a_message_is_the_commands(self):
        self.write("nan.mtx", HEADER + "1 1 1\n1 1 nan\n")
        power = ["poisson:n=3", "--mode", "power"]
        for arguments, end in (
                (["multiply", "nan.mtx"], "accept values that are not finite (--allow-nonfinite)"),
                (["bench", "kernels", "nan.mtx", "--backend", "host"], "accept values that are not finite"),  # it has no such option
                (["multiply", "poisson:n=3", "--policy", "lanes=4"], "name the kernel (--kernel)"),
                (["multiply", "poisson:n=3", "--kernel", "csr_host", "--policy", "lanes"], "(--policy)"),
                (["multiply", "poisson:n=3", "--rhs", 4, "--measure"], "(--measure)"),
                (["multiply", "poisson:n=3", "--rhs", 4, "--verify=sampled"], "(--verify)"),
                (["multiply", "poisson:n=3", "--column-block", 2], "(--rhs)"),
                (["multiply", "poisson:n=3", "--rhs", 4, "--column-block", 3], "choose 2 or 4 (--column-block)"),
                (["multiply", *power, "--rhs", 2], "(--rhs)"), (["multiply", *power, "--beta", 2], "(--beta)"),
                (["multiply", *power, "--iterations", 0], "(--iterations)"),
                (["batch", "molecules:count=3", "--policy", "columns=64"], "name the kernel (--kernel)"),
                (["partition", DATA / "stokes.mtx.gz", "o.h5", "--reorder", "graph"], "(--parts)")):
            with self.subTest(arguments=arguments):
                code = INPUT if "nan.mtx" in arguments else USAGE
                self.assertTrue(self.fail_with(code, *arguments).messages[0].endswith(end), end)
                if arguments[0] in ("multiply", "batch"):  # the message travels between the ranks with its setting
                    self.fail_on_every_rank(code, *arguments, ranks=2, says=end)

    def test_cuda_without_a_gpu(self):
        result = self.call("multiply", "poisson:n=3", "--backend", "cuda")
        if result.code == 0:
            self.skipTest("this machine has a GPU")
        self.fail_on_every_rank(RESOURCES, "multiply", "poisson:n=3", "--backend", "cuda", says=["no CUDA device", "on the host backend (--backend)"])


class Exhaustion(CliTest):
    def test_full_disk(self):
        for arguments in (["generate", "elasticity", "--n", 10, "o.h5"], ["partition", DATA / "stokes.mtx.gz", "o.h5"]):
            for limit in (1000, 100_000, 500_000):
                self.fail_with(RESOURCES, *arguments, preexec_fn=file_size_limit(limit), says=["o.h5", "cannot write"])

    def test_full_standard_output(self):
        self.write("a.mtx", SMALL)
        self.succeed("partition", "a.mtx", "a.h5")
        for command in (["info", "a.h5"], ["info", "a.h5", "--json"], ["multiply", "a.h5", "--iterations", "1"],
                        ["multiply", "a.h5", "--iterations", "1", "--json", "-"], ["verify-file", "a.h5"], ["--help"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([PROGRAM, *command], cwd=self.directory, env=environment(), stdout=full,
                                      stderr=subprocess.PIPE, text=True, timeout=LIMIT)
            self.assertEqual(done.returncode, RESOURCES, f"{command}: {done.stderr}")
            self.assertIn("standard output", done.stderr)

    def test_full_disk_for_results(self):
        # Without shared memory between ranks, whose files the limit would meet first.
        env = {"OMPI_MCA_btl": "self", "PMIX_MCA_gds": "hash"}
        for suffix in ("h5", "npy", "mtx"):
            self.fail_with(RESOURCES, "multiply", "banded:n=100000", "--output", f"y.{suffix}", env=env,
                           preexec_fn=file_size_limit(50_000), says=[f"cannot write y.{suffix}", "make room"])
        self.fail_with(RESOURCES, "multiply", "poisson:n=4", "--json", "r.json", env=env, preexec_fn=file_size_limit(500), only=False,
                       says=["r.json", "cannot write"])

    def test_signals_leave_nothing(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for arguments in (["generate", "elasticity", "--n", "NODES", "o.h5"], ["convert", "elasticity:n=NODES", "o.mtx"],
                              ["convert", "elasticity:n=NODES", "o.npz"]):
                for nodes in (60, 90, 140):  # a busy machine may be through before this test can send a signal
                    if self.end_while_writing(number, [word.replace("NODES", str(nodes)) for word in arguments]):
                        break
                    self.path(arguments[-1].split(":")[0]).unlink()
                else:
                    self.fail(f"{arguments} ended before it got signal {number}")

    def end_while_writing(self, number, arguments):
        """False if the command ended before it got the signal."""
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], cwd=self.directory, env=environment(),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + LIMIT
        while not self.files():
            self.assertIsNone(process.poll(), arguments)
            self.assertLess(time.monotonic(), end)
            time.sleep(0.005)
        process.send_signal(number)
        if process.wait(LIMIT) == OK:
            return False
        self.assertEqual(process.returncode, -number, arguments)
        self.assertEqual(self.files(), [], arguments)
        return True

    def test_full_disk_keeps_the_old_file(self):
        self.succeed("generate", "poisson", "--n", 4, "o.h5")
        before = self.path("o.h5").read_bytes()
        self.fail_with(RESOURCES, "generate", "elasticity", "--n", 10, "o.h5", preexec_fn=file_size_limit(200_000), says="o.h5")
        self.assertEqual(self.path("o.h5").read_bytes(), before)

    def test_header_that_asks_for_petabytes(self):
        self.write("huge.mtx", HEADER + "100000000000000 100000000000000 1\n1 1 1\n")
        self.fail_with(RESOURCES, "partition", "huge.mtx", "o.h5", says=["huge.mtx", "1.6 PB", "memory"])
        self.write("huge.mtx.gz", gzip.compress(self.path("huge.mtx").read_bytes()))
        self.fail_with(RESOURCES, "partition", "huge.mtx.gz", "o.h5", says=["huge.mtx.gz", "memory"])

    def test_columns_that_take_more_memory_than_their_entries(self):
        """Every command answers in little memory: with what it can, or with what is missing."""
        self.write("a.mtx", HEADER + f"2 {2**31} 2\n1 1 1\n2 {2**31} 2\n")
        self.write("b.mtx", HEADER + f"2 {2**60} 2\n1 1 1\n2 {2**60} 2\n")
        self.write("c.mtx", HEADER + f"2 {2**60 + 1} 1\n1 1 1\n")
        self.fail_with(INPUT, "partition", "c.mtx", "c.h5", says=["c.mtx", "at most 2^60"])
        for name in ("a", "b"):
            self.succeed("partition", f"{name}.mtx", f"{name}.h5")
            self.assertIn("Left out: the pattern", self.succeed("info", f"{name}.h5", preexec_fn=address_space_limit(2**31)).out)
            self.fail_with(INPUT, "convert", f"{name}.h5", "--format", "all", says=["less than 2^31"])
        self.fail_with(RESOURCES, "multiply", "b.h5", says=["x of ", "host memory"], env={"OMP_NUM_THREADS": "1"})
        self.fail_with(RESOURCES, "partition", "b.mtx", "--parts", 2, "d.h5", says=["columns", "host memory"])

    def test_generators_of_more_rows_than_memory(self):
        for generator in ("random:n=1000000000000000", "rmat:scale=40", "poisson27:n=50000"):
            self.fail_with(RESOURCES, "info", generator, says=["counting the nonzeros of", "host memory"])

    def test_matrix_larger_than_the_memory(self):
        self.fail_on_every_rank(RESOURCES, "multiply", "elasticity:n=3000", ranks=2, says=["memory", "972 GB"])


if __name__ == "__main__":
    unittest.main()
