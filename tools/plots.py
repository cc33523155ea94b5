"""What the scripts that draw reports share: matplotlib set up, a report read, a picture written, mistakes told in a line."""

import json
import os
import sys


def fail(message):
    sys.exit(f"{os.path.basename(sys.argv[0])}: {message}")


def pyplot(output, font_size):
    """matplotlib.pyplot for a picture `output`, the same bytes for the same report."""
    try:
        import matplotlib
        matplotlib.use("svg" if output.endswith(".svg") else "agg")
        import matplotlib.pyplot as plt
    except ImportError:
        fail("matplotlib is missing; install python3-matplotlib")
    matplotlib.rcParams.update({"svg.hashsalt": "shardmat", "font.size": font_size})
    return plt


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        fail(f"{path}: {error}")


def save(figure, output):
    figure.tight_layout()
    save_as_is(figure, output)


def save_as_is(figure, output):
    figure.savefig(output, metadata={"Date": None} if output.endswith(".svg") else None)
