#!/usr/bin/env python3
"""folders.py SOURCE_DIR: an arrow from one folder to another says that a file of the first includes one of the second. Fails
if two folders have arrows to each other, or if a layer includes one above it."""
import collections
import pathlib
import re
import sys

LAYERS = {"kernels": 0, "partition": 1, "comm": 1, "runtime": 2, "tools": 3}
root = pathlib.Path(sys.argv[1])
arrows = collections.defaultdict(set)  # (from, to): the files with the include
for layer in LAYERS:
    for path in sorted((root / layer).rglob("*.*")):
        if path.suffix not in (".h", ".cpp", ".cu"):
            continue
        file = path.relative_to(root)
        for name in re.findall(r'^#include "([^"]+)"', path.read_text(), re.M):
            target = pathlib.PurePath(name)
            if target.parent != file.parent and (root / name).exists():
                arrows[str(file.parent), str(target.parent)].add(str(file))

faults = []
for (here, there), files in sorted(arrows.items()):
    if here < there and (there, here) in arrows:
        faults.append(f"{here} and {there} include each other: {', '.join(sorted(files))} and "
                      f"{', '.join(sorted(arrows[there, here]))}. One of them belongs elsewhere.")
    mine, theirs = here.split("/")[0], there.split("/")[0]
    if mine != theirs and LAYERS[mine] <= LAYERS.get(theirs, 9):
        faults.append(f"{', '.join(sorted(files))}: {mine} does not include {theirs}, which is not below it.")
print(f"{len({here for here, _ in arrows})} folders, {len(arrows)} arrows")
print("\n".join(faults))
sys.exit(bool(faults))
