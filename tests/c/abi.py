#!/usr/bin/env python3
"""abi.py LIBRARY HEADERS [--update]: does libshardmat.so keep its binary interface?

symbols.txt lists what the library exports (nm). shardmat.abi describes the functions and structs of shardmat.h (abidw of
abigail-tools; left out where that is not installed). An addition wants --update, which writes both anew: commit them. A change that
breaks programs wants a new soname (SOVERSION in runtime/c/CMakeLists.txt); see the end of the comment in shardmat.h.
"""

import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
SYMBOLS = HERE / "symbols.txt"
TYPES = HERE / "shardmat.abi"


def output(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def exported(library):
    lines = output("nm", "-D", "--defined-only", library).splitlines()
    return sorted(line.split()[-1] for line in lines)


def library_of_headers(headers, folder):
    """A library with an empty function for each prototype: it has the interface of the real one, and compiles at once."""
    text = output("cc", "-E", "-P", "-x", "c", f"{headers}/shardmat.h")
    prototypes = re.findall(r"^((?:const )?\w+\s*\**\s*shardmat_\w+\([^;{}]*\));", text, re.MULTILINE)
    bodies = [f"{prototype} {{ {'' if prototype.startswith('void ') else 'return 0;'} }}\n" for prototype in prototypes]
    source, library = folder / "interface.c", folder / "libshardmat.so.0"
    source.write_text('#include "shardmat.h"\n' + "".join(bodies))
    output("cc", "-g", "-w", "-shared", "-fPIC", "-Wl,-soname,libshardmat.so.0", f"-I{pathlib.Path(headers).resolve()}", "-o", str(library), source.name, cwd=folder)
    return library, len(prototypes)


def main():
    library, headers, update = sys.argv[1], sys.argv[2], "--update" in sys.argv
    symbols = exported(library)
    if update:
        SYMBOLS.write_text("".join(f"{symbol}\n" for symbol in symbols))
    before = SYMBOLS.read_text().split()
    gone, new = sorted(set(before) - set(symbols)), sorted(set(symbols) - set(before))
    if gone:
        sys.exit(f"libshardmat.so.0 no longer exports {', '.join(gone)}: programs break, so it needs a new soname")
    if new:
        sys.exit(f"libshardmat.so.0 exports more than symbols.txt: {', '.join(new)}. If that is meant: tests/c/abi.py --update")
    print(f"{len(symbols)} symbols, as before")

    if shutil.which("abidw") is None or platform.machine() != "x86_64":
        print("types are not compared: that takes an x86-64 machine with abidw (package abigail-tools)")
        return
    with tempfile.TemporaryDirectory() as folder:
        described, functions = library_of_headers(headers, pathlib.Path(folder))
        if functions < len(symbols) - 1:  # that of shardmat_mpi.h is not in it
            sys.exit(f"found {functions} functions in shardmat.h for {len(symbols)} symbols")
        if update:
            output("abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--out-file", str(TYPES), str(described))
            lines = TYPES.read_text()  # a function on one line
            TYPES.write_text(re.sub(r"\n\s*(<parameter|<return|<var-decl|</data-member|</function-decl)", r"\1", lines))
        compared = subprocess.run(["abidiff", "--no-show-locs", str(TYPES), str(described)], capture_output=True, text=True)
        if compared.returncode != 0:
            sys.exit(f"shardmat.h differs from shardmat.abi. If nothing of it breaks programs (new functions, new fields at the end "
                     f"of structs with a size): tests/c/abi.py --update. Else it needs a new soname.\n{compared.stdout}"
                     f"{compared.stderr}")
    print(f"{functions} functions with their types, as before")


main()
