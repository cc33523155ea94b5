#!/usr/bin/env python3
"""pages.py SOURCE_DIR: do the pages name files that exist, and are pages and sources short?

A link of a page leads to a file, and to a heading of it. A path in backticks is there: from the root, from the page's folder, or
below that folder; a name without a folder is that of any file. NAME and FORMAT stand for any name. A README and
CONTRIBUTING.md have at most 60 lines, the README of the root 140; a source has at most 600. The change log names what was there once.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1])
TOP = ("comm", "deploy", "kernels", "partition", "runtime", "tests", "tools")
SUFFIXES = (".h", ".cpp", ".cu", ".cuh", ".c", ".f90", ".py", ".sh", ".cmake", ".md", ".slurm", ".yaml")
OTHERS = {"mpi.h"}  # of other programs


def tracked():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True)
    if listed.returncode:
        print("skipped: no git checkout, so nothing says which files are tracked")
        sys.exit(0)
    return [file for file in listed.stdout.splitlines() if (ROOT / file).exists()]


FILES = tracked()
NAMES = {pathlib.PurePath(file).name for file in FILES}
PLACES = set(FILES) | {str(folder) for file in FILES for folder in pathlib.PurePath(file).parents}


def anchors(text):
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in re.findall(r"^#+ (.*)", text, re.M)}


def wrong_link(page, link):
    name, _, anchor = link.partition("#")
    target = (ROOT / page).parent / name if name else ROOT / page
    if not target.exists():
        return True
    return bool(anchor) and anchor not in anchors(target.read_text())


def wrong_path(page, text):
    if not re.fullmatch(r"[\w./-]+", text) or re.search("NAME|FORMAT", text) or text.startswith(("/", ".")) or text in OTHERS:
        return False
    if text.split("/")[0] not in TOP and not (text.endswith(SUFFIXES) and text[0].islower()):
        return False
    if text in NAMES:
        return False
    folder, text = pathlib.PurePath(page).parent, text.rstrip("/")
    if text in PLACES or str(folder / text) in PLACES:
        return False
    return not any(file.endswith("/" + text) and (str(folder) == "." or file.startswith(f"{folder}/")) for file in PLACES)


def faults():
    for page in (file for file in FILES if file.endswith(".md") and file != "deploy/CHANGELOG.md"):
        text = (ROOT / page).read_text()
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if not link.startswith(("http:", "https:")) and wrong_link(page, link):
                yield f"{page} links to {link}, which is not there"
        for path in re.findall(r"`([^`\n]+)`", text):
            if wrong_path(page, path):
                yield f"{page} names {path}, which is not there"
        most = 140 if page == "README.md" else 60
        if page.endswith(("README.md", "CONTRIBUTING.md")) and len(text.splitlines()) > most:
            yield f"{page} has {len(text.splitlines())} lines, more than {most}"
    for file in FILES:
        if file.endswith(SUFFIXES[:6]) and (lines := len((ROOT / file).read_text().splitlines())) > 600:
            yield f"{file} has {lines} lines, more than 600"


found = list(faults())
print("\n".join(found) or f"{sum(file.endswith('.md') for file in FILES)} pages name files that exist")
sys.exit(bool(found))
