"""--help and --version say what there is and how it is typed."""

import fcntl
import json
import os
import pathlib
import pty
import re
import struct
import subprocess
import termios
import unittest
from pathlib import Path

from support import PROGRAM, USAGE, CliTest, environment, read_terminal

COMMANDS = ("generate", "partition", "convert", "info", "multiply", "solve", "eigen", "pagerank", "serve", "client", "token", "worker", "predict", "compare", "doctor", "verify-file")
BENCHMARKS = ("batched", "factors", "features", "io", "kernels", "papers", "scaling", "service", "shared-gpu", "solve", "spmm")
CLIENT = ("load", "load-arrays", "unload", "multiply", "solve", "eigen", "pagerank", "batch", "jobs", "cancel", "put-values", "status", "watch", "vectors", "make-vector", "put-vector", "get-vector", "delete-vector", "wait", "submit", "job", "pin", "metrics", "upload", "library")
GENERATORS = ("elasticity", "rmat")
WITH_TOPICS = (*((c,) for c in (*COMMANDS, "batch")), *(("client", c) for c in CLIENT), *(("token", c) for c in ("add", "list", "remove")), *(("generate", g) for g in GENERATORS), *(("bench", b) for b in BENCHMARKS))
ALL = ((), ("bench",), ("help",), *WITH_TOPICS)
TOPICS = ["Input", "Computation", "Output", "Machine"]
MOST_COMMON, FEW = 14, 15  # options of --help, and of a command of which --help shows all
TWELVE = {"multiply", "solve", "eigen", "pagerank", "batch", "serve"}  # of these --help shows twelve at most
TOOLS = pathlib.Path(__file__).parents[2] / "tools"


def options(text):
    """Names of the options in a help text; those of one option count once."""
    return re.findall(r"^  (--[\w-]+)", text, re.MULTILINE)


def declared_options():
    """Names that the sources of the commands declare, without those for tests."""
    sources = [TOOLS / "serve/options/serve_options.cpp", *(p for room in ("bench", "bench/papers", "cli", "client", "commands") for p in (TOOLS / room).glob("*.cpp"))]
    texts = [source.read_text() for source in sources]
    names, hidden = (set(word for text in texts for word in re.findall(pattern, text))
                     for pattern in (r'add_(?:option|flag)\w*\(\s*"!?(--[\w-]+)', r'hide_option\(\w+, "(--[\w-]+)'))
    return names - hidden


class Help(CliTest):
    def test_program_lists_commands_variables_and_exit_codes(self):
        text = self.succeed("--help").out
        for word in (*COMMANDS, "SHARDMAT_HDF5_LINKS", "SHARDMAT_PROGRESS", "Exit codes: 0 ok, 1 internal error, 2 usage, 3 input"):
            self.assertIn(word, text)

    def test_every_command_has_examples(self):
        for command in COMMANDS:
            with self.subTest(command=command):
                text = self.succeed(command, "--help").out
                self.assertRegex(text, r"Examples?:\n")
                self.assertIn(f"shardmat {command} ", text)

    def test_every_benchmark_has_examples(self):
        for benchmark in BENCHMARKS:
            with self.subTest(benchmark=benchmark):
                self.assertIn(f"shardmat bench {benchmark}", self.succeed("bench", benchmark, "--help").out.split("Example")[1])

    def test_every_option_of_multiply_is_explained(self):
        text = self.succeed("multiply", "--help-all").out
        for option in ("alpha", "backend", "beta", "exchange", "iterations", "json", "kernel", "mode", "output", "policy",
                       "no-cache", "no-measure", "reproducible", "sort", "timeout", "tune", "tune-budget", "type", "verify", "x", "y0"):
            self.assertRegex(text, rf"--{option}\b")

    def test_help_shows_the_common_options_or_all(self):
        for words in ALL:
            with self.subTest(words=words):
                short, long = self.succeed(*words, "--help").out, self.succeed(*words, "--help-all").out
                shown, every = options(short), options(long)
                self.assertEqual(len(set(every)), len(every))
                if len(every) > FEW:
                    self.assertIn(len(shown), range(8, (12 if words[0] in TWELVE else MOST_COMMON) + 1))
                    self.assertEqual([option for option in every if option in shown], shown)
                    self.assertTrue(short.endswith(f"\n\n--help-all lists all {len(every)} options.\n"))
                    self.assertNotIn("--help-all", long)
                else:
                    self.assertEqual(short, long)

    def test_every_option_stands_under_a_topic_in_one_order(self):
        for words in WITH_TOPICS:
            for help_flag in ("--help", "--help-all"):
                with self.subTest(words=words, help=help_flag):
                    text = self.succeed(*words, help_flag).out
                    headings = re.findall(r"^(Options|" + "|".join(TOPICS) + "):$", text, re.MULTILINE)
                    self.assertEqual(headings, [topic for topic in TOPICS if topic in headings])
                    self.assertTrue(headings or not options(text))

    def test_help_all_has_every_declared_option(self):
        shown = {option for words in (*WITH_TOPICS, ("help",)) for option in re.findall(r"--[\w-]+", "\n".join(
            line for line in self.succeed(*words, "--help-all").out.splitlines() if line.startswith("  -")))}
        declared = declared_options()
        self.assertGreater(len(declared), 100)
        self.assertEqual(declared - shown, set())

    def test_the_server_shows_the_same_options_as_the_command(self):
        server = pathlib.Path(PROGRAM).with_name("shardmat-serve")
        for help_flag in ("--help", "--help-all"):
            text = subprocess.run([server, help_flag], env=environment(), stdout=subprocess.PIPE, text=True, check=True).stdout
            self.assertEqual(options(text), options(self.succeed("serve", help_flag).out))

    def test_every_generator_has_help(self):
        text = self.succeed("generate", "--help").out
        names = re.findall(r"^  (\w+) {2,}\S", text[text.index("Subcommands:"):], re.MULTILINE)
        self.assertIn("elasticity", names)
        for name in names:
            self.assertIn("output", self.succeed("generate", name, "--help").out)

    def test_under_mpirun_help_is_printed_once(self):
        text = self.succeed("multiply", "--help", ranks=3).out
        self.assertEqual(text.count("Examples:"), 1)

    def test_version(self):
        first, *rest = self.succeed("--version").out.splitlines()
        self.assertRegex(first, r"^shardmat \d+\.\d+\.\d+( \([\w.-]+\))?$")
        found = dict(line.split(maxsplit=1) for line in rest)
        self.assertEqual(list(found), ["build", "compiler", "host", "CUDA", "NCCL", "MPI", "HDF5"])
        self.assertIn(found["build"], ("Debug", "Release", "RelWithDebInfo", "MinSizeRel"))
        self.assertRegex(found["host"], r"^baseline( avx2 avx512)? \(this CPU: (baseline|avx2|avx512)\)$")
        self.assertRegex(found["CUDA"], r"^(left out|\d+\.\d+.*, architectures \d\d.*)$")
        self.assertRegex(found["HDF5"], r"^\d+\.\d+\.\d+.*, (parallel|serial)$")

    def test_version_as_json_says_the_same(self):
        text, json_of_it = self.succeed("--version").out, json.loads(self.succeed("--version", "--json").out)
        cmake = (pathlib.Path(__file__).parents[2] / "CMakeLists.txt").read_text()
        self.assertEqual(json_of_it["version"], re.search(r"VERSION (\d+\.\d+\.\d+)", cmake)[1])
        self.assertIn(json_of_it["instruction_set_of_cpu"], json_of_it["instruction_sets"])
        for words in (json_of_it["version"], json_of_it["commit"], json_of_it["build_type"], json_of_it["compiler"],
                      " ".join(json_of_it["instruction_sets"]), json_of_it["mpi"], json_of_it["hdf5"]["version"]):
            self.assertIn(words, text)
        for words in [json_of_it["nccl"]] + (json_of_it["cuda"] or {"architectures": [None]})["architectures"]:
            self.assertIn(words or "left out", text)

    def test_json_alone_is_refused(self):
        self.assertIn("--version", self.fail_with(USAGE, "--json").err)

    def test_no_line_is_wider_than_the_terminal(self):
        for width in (80, 120):
            for words in ALL:
                with self.subTest(width=width, words=words):
                    lines = self.succeed(*words, "--help-all", env={"COLUMNS": str(width)}).out.splitlines()
                    self.assertEqual([line for line in lines if len(line) > width or line.endswith(" ")], [])
            self.assertGreater(max(map(len, self.succeed("multiply", "--help", env={"COLUMNS": str(width)}).out.splitlines())), width - 10)

    def test_width_is_the_terminals_or_80_columns(self):
        env = environment()
        env.pop("COLUMNS", None)
        usual = subprocess.run([PROGRAM, "multiply", "--help"], env=env, stdout=subprocess.PIPE, text=True).stdout
        self.assertEqual(max(map(len, usual.splitlines())), 80)
        ours, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
        subprocess.run([PROGRAM, "verify-file", "--help"], env=env, stdout=terminal, check=True)
        os.close(terminal)
        text = read_terminal(ours)
        lines = text.decode().replace("\r", "").splitlines()
        self.assertIn("structure", text.decode())
        self.assertLessEqual(max(map(len, lines)), 60)

    def test_commands_are_continued_as_a_shell_takes_them(self):
        text = self.succeed("predict", "--help").out
        joined = re.sub(r" \\\n +", " ", text)
        self.assertIn("shardmat predict study.json --ranks 8,64,512 --network-latency 5us --network-bandwidth 25GB\n", joined)

    def test_choices_are_those_of_the_lists(self):
        text = re.sub(r"\s+", " ", self.succeed("multiply", "--help-all").out)
        self.assertIn("Choices: auto, none, allgather, halo, peer, two_level", text)
        self.assertIn("Choices: nnz, rows", text)
        for option, title in (("--exchange", "Choices: auto,"), ("--method", "Choices:"), ("--kernel", "Choices on the host: auto,")):
            result = self.call("multiply", "poisson:n=3", option, "zzz", "--backend", "host")
            known = re.search(r"(?:choose|are) (.*?)(?: \(--|$)", result.messages[0]).group(1)
            for name in re.findall(r"[\w]+", known):
                if name not in ("or", "and", "auto"):
                    self.assertIn(f" {name}", text[text.index(title, text.index(option + " NAME")):].split(" --")[0], option)

    def test_help_is_a_command(self):
        self.assertEqual(self.succeed("help").out, self.succeed("--help").out)
        for words in (("multiply",), ("bench", "kernels"), ("generate", "rmat"), ("bench",)):
            self.assertEqual(self.succeed("help", *words).out, self.succeed(*words, "--help").out)
        self.fail_with(USAGE, "help", "multipy", says=['has no command "multipy"', "did you mean multiply?"])
        self.fail_with(USAGE, "help", "bench", "kernls", says=["shardmat bench has no command", "did you mean kernels?"])
        self.fail_with(USAGE, "help", "info", "more", says='shardmat info has no command "more"')
        self.assertEqual(self.succeed("help", "info", ranks=2).out.count("Usage:"), 1)

    def test_without_words_the_help_is_named(self):
        self.fail_with(USAGE, says="shardmat --help")
        self.fail_with(USAGE, "multiply", says=["matrix is required", "shardmat multiply --help"])

    def test_json_means_the_same_everywhere(self):
        study = ["bench", "scaling", "poisson:n=3", "--iterations", 2, "--backend", "host"]
        self.succeed(*study, "--json", "study.json")
        quick = ["--repetitions", 1, "--backend", "host"]
        for words, matrix in ((["info", "--quick"], "poisson:n=3"), (["multiply", "--iterations", 0], "poisson:n=3"),
                              (["batch", "--iterations", 0], "batch:count=3,dim=4"), (["predict"], "study.json"), (study[:2] + study[3:], "poisson:n=3"),
                              (["bench", "kernels", "--kernel", "csr_host", "--type", "f64", *quick], "poisson:n=3")):
            with self.subTest(words=words):
                self.assertIn("--json [FILE]", self.succeed(*[w for w in words if not str(w).startswith("-")][:2 if words[0] == "bench" else 1], "--help").out)
                text = self.succeed(*words, matrix, "--json", "r.json")
                self.assertNotIn("{", text.out[:1])
                written = json.loads(self.path("r.json").read_text())
                for ending in (["--json"], ["--json", "-"], ["--json=-"]):
                    printed = json.loads(self.succeed(*words, matrix, *ending).out)
                    self.assertEqual(type(printed), type(written))
                    if isinstance(printed, dict):
                        self.assertEqual(list(printed), list(written))
                if words[0] in ("multiply", "bench"):  # which take several matrices
                    self.fail_with(USAGE, *words, matrix, "--json", "poisson:n=4", says=["poisson:n=4 is the name of a matrix", "--json=-"])
                self.fail_with(USAGE, *words, matrix, "--json", "b.h5", says=["b.h5 is the name of a matrix", "--json=-"])


if __name__ == "__main__":
    unittest.main()
