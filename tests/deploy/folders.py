#!/usr/bin/env python3
"""folders.py SOURCE_DIR: an arrow from one folder to another says that a file of the first includes one of the second. Fails
if arrows lead from a folder back to itself, if a layer includes one above it, or if the words of the service, which all its
folders share, include one of them."""
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



def way(start, end):
    """The folders from one to another, along arrows; none if there is no way."""
    before, next_ones = {start: None}, [start]
    while next_ones and end not in before:
        next_ones = [b for a in next_ones for b in sorted({b for c, b in arrows if c == a}) if before.setdefault(b, a) == a]
    found = [end] if end in before else []
    while found and before[found[-1]] is not None:
        found.append(before[found[-1]])
    return found[::-1]


faults = []
for (here, there), files in sorted(arrows.items()):
    back = way(there, here)
    if back and here == min(back):
        faults.append(f"{here} leads back to itself: {' → '.join([here, *back])}; the first arrow is {', '.join(sorted(files))}. "
                      "One of these files belongs elsewhere.")
    if here == "tools/serve/words" and there.startswith("tools/"):
        faults.append(f"{', '.join(sorted(files))}: {here} includes {there}, and all folders of the service include the words.")
    mine, theirs = here.split("/")[0], there.split("/")[0]
    if mine != theirs and LAYERS[mine] <= LAYERS.get(theirs, 9):
        faults.append(f"{', '.join(sorted(files))}: {mine} does not include {theirs}, which is not below it.")
print(f"{len({here for here, _ in arrows})} folders, {len(arrows)} arrows")
print("\n".join(faults))
sys.exit(bool(faults))
