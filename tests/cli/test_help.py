"""--help and --version say what there is and how it is typed."""

import re
import unittest

from support import USAGE, CliTest

COMMANDS = ("generate", "partition", "convert", "info", "multiply", "predict", "verify-file")


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
        for benchmark in ("batched", "io", "kernels", "papers", "scaling", "spmm"):
            with self.subTest(benchmark=benchmark):
                self.assertIn(f"shardmat bench {benchmark}", self.succeed("bench", benchmark, "--help").out.split("Example")[1])

    def test_every_option_of_multiply_is_explained(self):
        text = self.succeed("multiply", "--help").out
        for option in ("alpha", "backend", "beta", "exchange", "iterations", "json", "kernel", "mode", "output", "policy",
                       "no-cache", "no-measure", "reproducible", "sort", "timeout", "tune", "tune-budget", "type", "verify", "x", "y0"):
            self.assertRegex(text, rf"--{option}\b")

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
        self.assertRegex(self.succeed("--version").out, r"^\d+\.\d+\.\d+\n$")

    def test_without_words_the_help_is_named(self):
        self.fail_with(USAGE, says="shardmat --help")
        self.fail_with(USAGE, "multiply", says=["matrix is required", "shardmat multiply --help"])


if __name__ == "__main__":
    unittest.main()
