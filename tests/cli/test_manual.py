"""The man page and the completion of shells have every command with every option, as --help shows them."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from support import PROGRAM, CliTest, environment


def for_each(command, path=()):
    """Words behind `shardmat`, and the command."""
    yield path, command
    for sub in command["commands"]:
        yield from for_each(sub, (*path, sub["name"]))


class Pages(CliTest):
    @classmethod
    def setUpClass(cls):
        cls.made = {form: subprocess.run([PROGRAM, "help", "--as", form], env=environment(), stdout=subprocess.PIPE, text=True, check=True).stdout
                    for form in ("json", "man", "bash", "zsh")}
        cls.tree = json.loads(cls.made["json"])

    def options_in_help(self, path):
        text = self.succeed(*path, "--help-all").out
        lines = re.findall(r"^  ((?:-\w, )?--\w.*)", text, re.MULTILINE)
        return {name for line in lines for name in re.findall(r"(?:^|(?<=, ))--?\w[\w-]*", line.split("  ")[0])}

    def test_every_command_has_the_options_of_its_help(self):
        commands = dict(for_each(self.tree))
        for words in ("solve", "client load", "generate elasticity", "bench kernels", "bench service", "worker"):
            self.assertIn(tuple(words.split()), commands)
        for path, command in commands.items():
            with self.subTest(command=path):
                names = {name for option in command["options"] for name in option["names"].split(", ")}
                self.assertEqual(names, self.options_in_help(path))

    def test_the_man_page_has_them(self):
        page = self.made["man"].replace("\\-", "-")
        for path, command in for_each(self.tree):
            if not path:
                continue
            name = " ".join(("shardmat", *path))
            start = page.index(f'.SS "{name}"\n')
            section = page[start:page.find('\n.SS "', start + 1)]
            self.assertIn(command["description"].split("\n")[0], section)
            for option in command["options"]:
                self.assertIn(f".TP\n\\fB{option['names']}\\fR", section, name)
        headings = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "COMMANDS", '"ENVIRONMENT"', '"EXIT STATUS"']
        self.assertEqual(re.findall(r"^\.SH (.*)", page, re.MULTILINE), headings)

    @unittest.skipIf(shutil.which("man") is None, "there is no man")
    def test_man_shows_the_page_without_a_warning(self):
        with tempfile.NamedTemporaryFile("w", suffix=".1", encoding="utf-8") as file:
            file.write(self.made["man"])
            file.flush()
            shown = subprocess.run(["man", "--warnings", "--local-file", file.name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=dict(os.environ, LC_ALL="C.UTF-8", MANWIDTH="80", MANROFFSEQ="", MAN_KEEP_FORMATTING="0"))
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        page = re.sub(".\b", "", shown.stdout)  # letters that are printed twice are bold
        for text in ("shardmat solve", "--preconditioner", "shardmat bench kernels", "--allow-nonfinite"):
            self.assertIn(text, page)

    def complete(self, *words):
        """What bash offers for the last word."""
        script = "source /dev/stdin <<< \"$PAGES\"; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _shardmat; printf '%s\\n' \"${COMPREPLY[@]}\""
        result = subprocess.run(["bash", "--norc", "-c", script, "bash", *words], env=dict(os.environ, PAGES=self.made["bash"]),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True)
        self.assertEqual(result.stderr, "")
        return [line for line in result.stdout.splitlines() if line]

    def test_bash_completes_commands(self):
        commands = [command["name"] for command in self.tree["commands"]]
        self.assertEqual(self.complete("shardmat", ""), commands)
        self.assertEqual(self.complete("shardmat", "so"), ["solve"])
        self.assertEqual(self.complete("shardmat", "help", "mul"), ["multiply"])
        self.assertEqual(self.complete("shardmat", "bench", "ker"), ["kernels"])
        self.assertEqual(self.complete("shardmat", "client", "put"), ["put-values", "put-vector"])

    def test_bash_completes_every_option(self):
        for path, command in for_each(self.tree):
            offered = self.complete("shardmat", *path, "--")
            names = [name for option in command["options"] for name in option["names"].split(", ") if name.startswith("--")]
            self.assertEqual(offered, ["--help", "--help-all", *names], path)

    def test_bash_completes_values(self):
        self.assertEqual(self.complete("shardmat", "multiply", "a.h5", "--type", ""), ["f32", "f64", "f16", "bf16"])
        self.assertEqual(self.complete("shardmat", "multiply", "a.h5", "--type", "=", "f3"), ["f32"])
        self.assertEqual(self.complete("shardmat", "solve", "a.h5", "--type", "="), ["f32", "f64"])
        self.assertIn("halo", self.complete("shardmat", "multiply", "--exchange", "h"))
        self.assertEqual(self.complete("shardmat", "solve", "a.h5", "--output", ""), [])  # bash completes a file

    @unittest.skipIf(shutil.which("zsh") is None, "there is no zsh")
    def test_zsh_completes(self):
        stubs = "_describe() { [[ $1 = -o ]] && shift; print -l -- \"${(@P)2}\" }; _files() { print files }; compset() { : }\n"

        def complete(*words):
            with tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder, "_shardmat")
                file.write_text(self.made["zsh"])
                script = f"{stubs} words=(\"$@\"); CURRENT=$#; set --; . {file}"
                return subprocess.run(["zsh", "-f", "-c", script, "zsh", *words], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()

        self.assertEqual([line.split(":")[0] for line in complete("shardmat", "")], [command["name"] for command in self.tree["commands"]])
        self.assertEqual(complete("shardmat", "solve", "a.h5", "--type", ""), ["f32", "f64"])
        self.assertEqual(complete("shardmat", "multiply", ""), ["files"])
        self.assertEqual(complete("shardmat", "solve", "--output", ""), ["files"])
        for path, command in for_each(self.tree):
            names = [name for option in command["options"] for name in option["names"].split(", ")]
            self.assertEqual([line.split(":")[0] for line in complete("shardmat", *path, "--")], ["--help", "--help-all", *names])


if __name__ == "__main__":
    unittest.main()
