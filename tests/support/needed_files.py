"""needed_files.py BUILD_FOLDER < names of tests: prints the files that Ninja must build before these tests can run. A test needs
every file of the build folder that its command and its properties name, and everything that is built in a folder they name."""

import pathlib
import re
import subprocess
import sys


def main():
    build = pathlib.Path(sys.argv[1])
    tests = set(sys.stdin.read().split())
    named = set()
    for file in build.rglob("CTestTestfile.cmake"):
        for line in file.read_text().splitlines():
            test = re.match(r"\w+\(\[=\[(.*?)\]=\]", line)
            if test and test[1] in tests:
                named |= {pathlib.Path(word) for word in re.split(r'[";:=]', line) if word.startswith(f"{build}")}
    if build in named or not (build / "build.ninja").exists():
        print("all")
        return
    rules = subprocess.run(["ninja", "-C", build, "-t", "targets", "all"], check=True, stdout=subprocess.PIPE, text=True).stdout
    outputs = [pathlib.Path(line.rsplit(": ", 1)[0]) for line in rules.splitlines() if not line.endswith(": phony")]
    for output in outputs:
        if "CMakeFiles" not in output.parts and named & {build / output, *(build / output).parents}:
            print(output)


main()
