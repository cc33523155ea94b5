"""How processes are started: launchers of another MPI, and ranks that were given different things."""

import re
import unittest

import numpy as np

from support import OK, PROGRAM, ROOT, USAGE, CliTest, run

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
        source = (ROOT / "tools" / "cli" / "given_options.cpp").read_text()
        known = set(re.findall(r'"([^"]+)"', re.search(r"kOutputs\[\] = \{(.*?)\}", source, re.DOTALL).group(1)))
        found = set()
        benches = [f"bench {name}" for name in re.findall(r"^  ([\w-]+)  ", self.succeed("help", "bench").out, re.MULTILINE)]
        for command in ["multiply", "solve", "eigen", "pagerank", "batch", "partition", "generate", "convert", "info", "predict",
                        *benches]:
            text = re.sub(r"\n {10,}", " ", self.succeed(*command.split(), "--help-all").out)
            for name, meaning in re.findall(r"^  (?:-\w,)?(--[\w-]+|output)[^\n]*?  (\S[^\n]*)$", text, re.MULTILINE):
                if re.match(r"(write|draw|save|store|append)\b.* FILE|write the batch|(shard )?file to write", meaning):
                    found.add(name)
        self.assertTrue({"output", "--output", "--json", "--plot", "--save", "--vectors", "--spy", "--csv", "--html"} <= found, found)
        self.assertEqual(found - known - {"--values"}, set())  # --values FILE: the values to write


if __name__ == "__main__":
    unittest.main()
