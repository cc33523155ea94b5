#!/usr/bin/env python3
"""headers.py CMAKE SOURCE_DIR HEADERS: installs the C++ headers HEADERS (a;b) as `cmake --install` does, and compares them
with headers.txt. Fails for a header that is not in this list, with who includes it, for a name in it that is gone, and for a
header that does not say which threads may use it, who owns what and what is collective."""
import pathlib
import re
import subprocess
import sys
import tempfile

cmake, source, headers = sys.argv[1:]
listed = pathlib.Path(__file__).with_name("headers.txt")
known = set(listed.read_text().split())
with tempfile.TemporaryDirectory() as work:
    include = pathlib.Path(work, "include")
    subprocess.run([cmake, f"-DSHARDMAT_SOURCE_DIR={source}", f"-DSHARDMAT_STAGED_DIR={work}/staged",
                    f"-DSHARDMAT_INCLUDE_DESTINATION={include}", f"-DSHARDMAT_HEADERS={headers}",
                    "-P", f"{source}/deploy/cmake/install_headers.cmake"], check=True, stdout=subprocess.DEVNULL)
    texts = {str(path.relative_to(include / "shardmat")): path.read_text() for path in include.rglob("*.h")}

lines = sum(text.count("\n") for text in texts.values())
print(f"{len(texts)} headers of {lines} lines are installed")
for name in sorted(texts.keys() - known):
    by = [other for other, text in texts.items() if re.search(rf"#\s*include\s*<shardmat/{re.escape(name)}>", text)]
    print(f"{name} is installed, since {', '.join(sorted(by)) or 'SHARDMAT_PUBLIC_HEADERS'} includes it. Declare its classes "
          f"there instead of including it, or, if programs need it, add it to {listed}.")
for name in sorted(known - texts.keys()):
    print(f"{name} is not installed any more: delete it from {listed}.")
silent = False
for name, text in sorted(texts.items()):
    top = re.split(r"#pragma once|#ifndef", text)[0]
    for what, words in (("which threads may use it: a line \"Threads:\"", "Threads:"),
                        ("who owns what: a line \"Ownership:\"", r"Ownership:|\bowns\b"), ("what is collective", "[Cc]ollective")):
        if not re.search(words, top):
            silent = True
            print(f"{name} does not say at its top {what}.")
sys.exit(silent or texts.keys() != known)
