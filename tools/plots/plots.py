"""What the scripts that draw reports share: matplotlib set up, a report read, a picture written, mistakes told in a line."""

import argparse
import io
import json
import os
import re
import sys

import interpreter


def fail(message):
    sys.exit(f"{os.path.basename(sys.argv[0])}: {message}")


def pyplot(output, font_size):
    """matplotlib.pyplot for a picture `output`, the same bytes for the same report."""
    interpreter.require(["matplotlib"], fail)
    import matplotlib
    matplotlib.use("svg" if output.endswith(".svg") else "agg")
    import matplotlib.pyplot as plt
    matplotlib.rcParams.update({"svg.hashsalt": "shardmat", "font.size": font_size})
    return plt


# What tells the reports of a command from others: names in the report, and in each of its cases.
PARTS = {
    "compare": (("kind", "before", "now", "times"), ()),
    "solve": (("matrix", "solver", "columns"), ()),
    "multiply": (("matrix", "ranks", "iteration", "local_product"), ()),
    "info": (("name", "rows", "nnz", "row_lengths"), ()),
    "bench kernels": (("machine", "yardstick", "cases"), ("matrix", "type", "best_own", "auto")),
    "bench spmm": (("machine", "cases"), ("matrix", "type", "order", "rhs", "spmv_s")),
    "bench batched": (("machine", "cases"), ("figure", "source", "type", "rhs")),
    "bench kernels|spmm|batched --peers": (("machine", "cases"), ("work", "type", "ours")),
    "bench papers": (("machine", "tables"), ()),
    "bench scaling": (("host", "type", "cases"), ("matrix",)),
    "bench service": (("machine", "scenarios"), ()),
    "bench solve": (("machine", "clock", "table"), ()),
}


def missing(report, command):
    """What a report must have to be one of `command`, and has not; None if it has all."""
    of_report, of_cases = PARTS[command]
    if not isinstance(report, dict):
        return "it holds no JSON object"
    for name in of_report:
        if name not in report:
            return f'it has no "{name}"'
    if of_cases and not isinstance(report["cases"], list):
        return 'its "cases" are no list'
    for name in of_cases:
        if not all(isinstance(case, dict) and name in case for case in report["cases"]):
            return f'a case of it has no "{name}"'
    return None


def read(path, command):
    """The report of `shardmat {command}` in a file. Ends the script if the file has another one."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{path}: {error}")
    try:
        report = json.loads(text)
        wrong = missing(report, command)
    except ValueError as error:
        wrong = f"it is not JSON ({error})"
    if wrong is None:
        return report
    purpose = sys.modules["__main__"].__doc__.splitlines()[0]
    print(f"{os.path.basename(sys.argv[0])}: {path} is not a report of shardmat {command}: {wrong}. This script "
          f"{purpose[0].lower()}{purpose[1:]} Write one with: shardmat {command} … --json FILE", file=sys.stderr)
    sys.exit(2)


def arguments(description, report, output="picture to write (.svg, .png or .pdf)"):
    """The command line of a script that takes one report: its names `report` and `output`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", help=report)
    parser.add_argument("--output", required=True, help=output)
    return parser.parse_args()


def write_page(description, benchmark, font_size, page):
    """The whole of a script that writes a report as a page: page(report, plt) is its text."""
    given = arguments(description, f"JSON file of shardmat bench {benchmark}", "HTML file to write")
    report = read(given.report, f"bench {benchmark}")
    plt = pyplot(".svg", font_size)
    plt.rcParams["svg.fonttype"] = "none"
    text = page(report, plt)
    with open(given.output, "w", encoding="utf-8") as file:
        file.write(text)


def inline_svg(figure, plt, number):
    """The figure as an <svg> element for a page. Its ids begin with `number`, since a page has many.

    It says in plain attributes how it looks, which programs that print pages to PDF know, too; of a page's style sheet they
    apply little to what is in an <svg>. A rule of the style sheet goes before an attribute: see svg_colors().
    """
    file = io.StringIO()
    figure.savefig(file, format="svg", transparent=True, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    plt.close(figure)
    svg = file.getvalue()
    svg = svg[svg.index("<svg"):]
    svg = re.sub(r' (xmlns(:\w+)?|version|width|height)="[^"]*"', "", svg[:svg.index(">")]) + svg[svg.index(">"):]
    used = set(re.findall(r"#([A-Za-z]\w*)", svg))
    svg = re.sub(r' id="([^"]*)"', lambda m: f' id="p{number}-{m[1]}"' if m[1] in used else "", svg)
    svg = re.sub(r'(url\(|href=")#', rf"\1#p{number}-", svg)
    svg = re.sub(r' style="([^"]*)"', lambda m: attributes(m[1]), svg)
    # A mark takes the colour of the <use> that shows it: rules of the page do not reach into what is used.
    svg = re.sub(r"<defs>.*?</defs>", lambda m: re.sub(r' stroke="#\w+"', "", m[0]), svg, flags=re.DOTALL)
    return svg.replace("<svg", '<svg role="img"', 1)


def attributes(style):
    """CSS of matplotlib as attributes of SVG. Of fonts the size and the weight: the page has the family."""
    found = {}
    for name, value in re.findall(r"([\w-]+): ([^;]*)", style):
        if name == "font":
            found |= {"font-size": re.search(r"([\d.]+)px", value)[1], "font-family": "sans-serif"}
            if weight := re.search(r"\b(bold|[1-9]00)\b", value):
                found["font-weight"] = weight[1]
        else:
            found[name] = value.removesuffix("px") if name == "font-size" else value
    return "".join(f' {name}="{value}"' for name, value in found.items())


def svg_colors(colors):
    """Rules of a style sheet that give what inline_svg() drew in some colours those of the page."""
    return "".join(f'svg [{name}="{color}"] {{ {name}: {of_page}; }}\n' for color, of_page in colors.items()
                   for name in ("fill", "stroke"))


def heading(report):
    """Where the figures come from, and that more were to come if the benchmark did not end."""
    machine = report["machine"]
    return f'{machine["processor"]}, {machine["software"]}' + unfinished(report).replace(" (", "\n(")


def unfinished(report):
    return "" if report.get("complete", True) else " (not complete: the benchmark did not end)"


def unsteady(times):
    """True if half of the runs took more than twice as long as the shortest."""
    return times["median_s"] > 2 * times["min_s"]


def label_logarithms(axis):
    """Numbers at 1, 2 and 5 times the powers of ten. An axis too short for two of them has more."""
    from matplotlib import ticker

    class TwoOrMore(ticker.LogLocator):
        def tick_values(self, low, high):
            for subs in ((1, 2, 5), range(1, 10)):
                self.set_params(subs=subs)
                ticks = super().tick_values(low, high)
                if sum(low <= tick <= high for tick in ticks) >= 2:
                    return ticks
            return ticker.MaxNLocator(4).tick_values(low, high)
    axis.set_major_locator(TwoOrMore())
    axis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
    axis.set_minor_locator(ticker.NullLocator())


def save(figure, output):
    figure.tight_layout()
    save_as_is(figure, output)


def save_as_is(figure, output):
    figure.savefig(output, metadata={"Date": None} if output.endswith(".svg") else None)
