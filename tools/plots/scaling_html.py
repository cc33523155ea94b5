#!/usr/bin/env python3
"""Writes a report of `shardmat bench scaling --json` as one HTML page that needs no other file and no network.

    scaling_html.py scaling.json --output scaling.html

The page holds pictures (those of plot_scaling.py), tables, how to read them, and the JSON report itself, in the element with
the id shardmat-report. It is light or dark as the reader likes, and light on paper. Needs matplotlib (python3-matplotlib).
"""

import json
from html import escape

import plot_scaling
import plots
from page_style import STYLE, size, time

CAPTIONS = {"time": "Time of an iteration", "efficiency": "Efficiency", "breakdown": "Where the time goes",
            "solves": "Time to solution (dotted: set-up alone, dashed: perfect)", "iterations": "Iterations"}

HOW_TO_READ = """
<p>An <b>iteration</b> moves the parts of x that ranks need of each other and multiplies. Its time is that of the slowest
rank, the median of all iterations. It is split into three parts that add up to it. The product was timed alone before the
iterations; where it took longer alone, because something disturbed one of the two, it counts as long as the iteration, and a
note says so.</p>
<ul>
<li><b>Product</b>: what the product takes alone, with x already there; the mean over ranks of each rank's own median.</li>
<li><b>Imbalance</b>: what the product takes longer on the slowest rank than in the mean. Ranks differ: balance the parts, or
look for a slow device.</li>
<li><b>Waiting for x</b>: what an iteration takes beyond the slowest product. This is the part of the exchange that no
product hides. It can be more than the exchange alone, since ranks also wait for each other and share cores and links. It
is 0 where an iteration takes no longer than the product alone. On one rank, where there is nothing to wait for, it shows
how much times vary from one measurement to the next.</li>
</ul>
<p><b>Exchange alone</b> is moving x with no product beside it; what of it is not in <i>waiting</i> was hidden.</p>
<p><b>Predicted</b> is the iteration that a model foretells from products on one rank and from exchanges between the ranks,
as <code>shardmat predict</code> does for more ranks; crosses in the picture. No time of several ranks enters it.</p>
<p><b>Set-up and solve</b> begins with the rows on the ranks and ends with x. A system is solved several times; the median
counts. Iterations may change with the ranks: then the time of one iteration tells of the machine, their number of the method.</p>
<p><b>Efficiency</b> is the share of perfect scaling, from the fastest case on the fewest ranks that could be measured. In
<b>strong scaling</b> the matrix stays the same, and in perfect scaling the time falls as 1/ranks. In <b>weak scaling</b> the
matrix grows with the ranks (numbers in braces are multiplied by them), and in perfect scaling the time stays constant; that
is a fair measure only if the nonzeros a rank stay nearly constant. More than 100 % is possible, for instance where
a smaller part fits into a cache.</p>
<p><b>Of a copy</b> is how fast the product moves the bytes that it must move, as a share of the bandwidth of a plain copy
measured in the same run; more than 100 % means that caches hold a part of them.</p>
"""

SAVE = """
document.querySelector("button").onclick = () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([document.getElementById("shardmat-report").textContent]));
  link.download = "scaling.json";
  link.click();
};
"""


def picture(plt, draw, study, number, cases):
    """The drawing as an <svg> element in the colours of the page."""
    figure, axes = plt.subplots(figsize=(3.4, max(2.5, 1.1 + 0.2 * len(cases))), layout="constrained")
    draw(axes, study)
    return plots.inline_svg(figure, plt, number)


def table(caption, columns, cases, cells, asked="exchange_asked"):
    """`columns`: headings, those of words ending in "<"; a case without figures has a reason in their place."""
    css = [' class="word"' if name.endswith("<") else "" for name in columns]
    labels = [f'{c} data-label="{name.rstrip("<")}"' for c, name in zip(css, columns)]
    rows = []
    for case in cases:
        known = [str(case["ranks"]), escape(case[asked] if case["ranks"] > 1 or asked != "exchange_asked" else "none")]
        if "report" in case:
            row = [f"<td{c}>{cell}</td>" for c, cell in zip(labels, [*known, *cells(case)])]
        else:
            row = [f"<td{c}>{cell}</td>" for c, cell in zip(labels, known)]
            row.append(f'<td class="long" data-label="not measured" colspan="{len(columns) - 2}">{escape(case["why_not"])}</td>')
        rows.append("<tr>" + "".join(row) + "</tr>")
    heading = "".join(f'<th{c} scope="col">{name.rstrip("<")}</th>' for c, name in zip(css, columns))
    return (f'<div class="table cards"><table><caption>{caption}</caption><thead><tr>{heading}</tr></thead><tbody>'
            + "\n".join(rows) + "</tbody></table></div>")


def predicted(case):
    """The predicted iteration, and how far it is off."""
    if "forecast" not in case:
        return ["–", "–"]
    seconds, measured = case["forecast"]["iteration_s"], case["report"]["iteration"]["median_s"]
    return [time(seconds), f"{100 * (seconds / measured - 1):+.0f}\u00a0%"]


def solved(case):
    report, samples = case["report"], case["samples"]
    wholes = [a + b for a, b in zip(samples["set_up_s"], samples["solve_s"])]
    return [escape(f'{report["solver"]["name"]} + {report["solver"]["preconditioner"]}'), f'<b>{time(case["whole_s"])}</b>',
            time(case["set_up_s"]), time(case["solve_s"]), f'{case["iterations"]:,}', time(report["seconds_an_iteration"]),
            time(report["product_s"]), time(report["exchange_s"]), f"{time(min(wholes))} … {time(max(wholes))}",
            f'{case["residual"]:.1e}', size(report["device_bytes"]["max"]), f'<b>{100 * case["efficiency"]:.1f} %</b>']


def times(case):
    report, parts = case["report"], case["breakdown"]
    spread = report["iteration"]
    return [f'<b>{time(spread["median_s"])}</b>', *predicted(case), time(parts["product_s"]), time(parts["imbalance_s"]),
            time(parts["waiting_s"]), time(report["exchange_alone"]["median_s"]),
            f'{time(spread["min_s"])} … {time(spread["max_s"])}', f'<b>{100 * case["efficiency"]:.1f} %</b>',
            f'{report["gflops"]:,.1f}']


def setup(case):
    report = case["report"]
    hosts, threads = len({rank["host"] for rank in report["ranks"]}), report["threads_per_rank"]
    of_copy = report["bandwidth_bytes_per_s"]["mean"] / report["copy_bandwidth_bytes_per_s"]["mean"]
    kernels = ", ".join(dict.fromkeys(kernel for rank in report["ranks"] for kernel in rank["kernel"].split("; ")))
    return [escape(report["exchange"]["name"]), str(hosts), str(threads), escape(kernels).replace(",", ",<wbr>"),
            f'{report["matrix"]["nnz"] / case["ranks"]:,.0f}', f'{report["partition"]["imbalance"]:.3f}',
            size(report["exchange"]["bytes_received"]["max"]), f'{100 * report["exchange"]["overlapped"]["mean"]:.0f} %',
            f'{100 * of_copy:.0f} %', size(report["device_bytes"]["max"]),
            "passed" if report["verification"] else "not asked for"]


def conclusion(study):
    """What the most ranks reached, in a sentence."""
    best = min((case for case in study.cases if case["ranks"] == study.ranks[-1]), key=plot_scaling.time)
    before, now = plot_scaling.time(study.first), plot_scaling.time(best)
    ranks = f'{best["ranks"]} rank{"s" * (best["ranks"] > 1)}'
    if best is study.first:
        return f"On {ranks} an iteration takes {time(now)}."
    change = (f"where perfect is {time(before)}" if study.weak else
              f'{before / now:.3g} times as fast as on {study.first["ranks"]} ({time(before)})')
    return (f'On {ranks} an iteration takes {time(now)} with <code>{escape(best["report"]["exchange"]["name"])}</code>, '
            f'{change}: <b>{100 * best["efficiency"]:.1f}\u00a0%</b> of perfect {study.scaling}.'
            + " This figure is doubtful, see the notes." * plot_scaling.doubtful(best))


def conclusion_of_solves(study):
    """What the most ranks reached."""
    best = min((case for case in study.solved if case["ranks"] == max(case["ranks"] for case in study.solved)),
               key=lambda case: case["whole_s"])
    text = (f'On {best["ranks"]} rank{"s" * (best["ranks"] > 1)} set-up and solve take {time(best["whole_s"])} with '
            f'<code>{escape(best["report"]["solver"]["preconditioner"])}</code> in {best["iterations"]:,} iterations')
    if best["ranks"] == best["base_ranks"]:
        return text + "."
    return text + (f': <b>{100 * best["efficiency"]:.1f}\u00a0%</b> of perfect {study.scaling} from {best["base_ranks"]} '
                   f'rank{"s" * (best["base_ranks"] > 1)}.' + " This figure is doubtful, see the notes." * plot_scaling.doubtful(best))


def notes(cases):
    """What makes figures doubtful, a line each."""
    lines = "".join(f'<li>{case["ranks"]} rank{"s" * (case["ranks"] > 1)}, '
                    f'<code>{escape(notes_of_cases(case))}</code>: {escape(note)}</li>'
                    for case in cases for note in case.get("notes", []))
    return f'<div class="notes"><b>Doubtful figures</b> (hollow marks and * above)<ul>{lines}</ul></div>' if lines else ""


def section(plt, study, number):
    kind = f'<span class="kind">{study.scaling}</span>'
    parts = [f"<section><h2>{escape(study.matrix)} {kind}</h2>"]
    if study.cases:
        matrix = study.first["report"]["matrix"]
        growing = f' on {study.first["ranks"]}' if study.weak else ""
        parts.append(f'<p class="soft">{matrix["rows"]:,} × {matrix["cols"]:,}, {matrix["nnz"]:,} nonzeros{growing}, '
                     f'{escape(study.type)}, {escape(study.device)}</p><p>{conclusion(study)}</p><div class="pictures">')
        for name, draw in plot_scaling.PICTURES.items():
            svg = picture(plt, draw, study, f"{number}{name}", study.cases)
            parts.append(f"<figure><figcaption>{CAPTIONS[name]}</figcaption>{svg}</figure>")
        parts.append("</div>")
    if study.all:
        parts.append(table("Times: iteration = product + imbalance + waiting; predicted: the iteration, by a model of one rank and "
                           "of the links",
                           ("ranks", "exchange asked<", "iteration", "predicted", "off by", "product", "imbalance", "waiting for x",
                            "exchange alone", "iterations from … to", "efficiency", "GFLOP/s"), study.all, times))
    parts.append(notes(study.cases))
    if study.cases:
        parts.append(table("What was run",
                           ("ranks", "exchange asked<", "taken<", "hosts", "threads a rank", "kernels<", "nonzeros a rank",
                            "most of a rank / mean", "x received, most of a rank", "multiplied while x moves", "of a copy",
                            "memory, most of a rank", "verified<"), study.cases, setup))
    if study.solves:
        parts.append("<h3>Time to solution</h3>")
        if study.solved:
            parts.append(f'<p>{conclusion_of_solves(study)}</p><div class="pictures">')
            for name, draw in plot_scaling.PICTURES_OF_SOLVES.items():
                svg = picture(plt, draw, study, f"{number}{name}", study.solved)
                parts.append(f"<figure><figcaption>{CAPTIONS[name]}</figcaption>{svg}</figure>")
            parts.append("</div>")
        parts.append(table("Set-up and solve of A·x = 1, medians of the repetitions",
                           ("ranks", "preconditioner asked<", "taken<", "set-up and solve", "set-up", "solve", "iterations",
                            "an iteration", "a product", "exchange alone", "repetitions from … to", "residual",
                            "memory, most of a rank", "efficiency"), study.solves, solved, "preconditioner_asked"))
        parts.append(notes(study.solved))
    return "\n".join(parts) + "</section>"


def runs(report):
    """Who measured, where and when."""
    parts = []
    for number, run in enumerate(report.get("runs", []), 1):
        built = f'{run["version"]} ({run["commit"]})' if run["commit"] else run["version"]
        clocks = [f'CPU {run["cpu_mhz"]["min"]:.0f} to {run["cpu_mhz"]["max"]:.0f} MHz'] if "cpu_mhz" in run else []
        clocks += [f'{gpu["name"]} {gpu["sm_mhz"]} of {gpu["sm_mhz_possible"]} MHz' for gpu in run.get("gpus", [])]
        settings = [f"{name}={value}" for name, value in run["transport_settings"].items()]
        load = run["load"]
        rows = {
            "Program": f'shardmat {built}, {run["date"].replace("T", " ").replace("Z", " UTC")}, {run["measured"]} cases',
            "Command": run["command"],
            "Job": run.get("job", ""),
            "Ranks": "; ".join(f'{group["ranks"]} on {group["host"]}: cores {group["cores"]}' for group in run["binding"]),
            "Network": "; ".join(filter(None, [run["mpi"], run["network"], *settings])),
            "Clocks": "; ".join(clocks),
            "Load": f'other programs kept {load["busy_cores"]:.1f} cores busy, {load["stolen_cores"]:.1f} were stolen; '
                    f'load average {load["load_average_1min"]:.1f}',
        }
        title = f"<h3>Run {number}</h3>" if len(report["runs"]) > 1 else ""
        listed = "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in rows.items() if text)
        parts.append(f"{title}<dl>{listed}</dl>")
    return f'<section><h2>Who measured</h2>{"".join(parts)}</section>' if parts else ""


def notes_of_cases(case):
    """How a note names its case."""
    return case["report"]["exchange"]["name"] if "exchange_asked" in case else case["preconditioner_asked"]


def facts(report, studies):
    places = [rank for study in studies for case in [*study.cases, *study.solved] for rank in case["report"]["ranks"]]
    hosts, devices = ([*dict.fromkeys(rank[key] for rank in places)] for key in ("host", "device"))
    columns = report["right_hand_sides"]
    rows = {
        "Matrices": ", ".join(f"{study.matrix} ({study.scaling})" for study in studies),
        "Values": report["type"] + (f", {columns} right-hand sides" if columns > 1 else ""),
        "Ranks": f'{report["ranks"]} started, on {len(hosts)} host{"s" * (len(hosts) != 1)}'
                 + (f' ({", ".join(hosts[:4])}{" …" * (len(hosts) > 4)})' if hosts else ""),
        "Devices": ", ".join(devices),
        "Threads": f'{report["threads_per_rank"]} a rank, the same in all cases' if report.get("threads_per_rank") else "",
        "Software": report["software"],
        "Measured": f'{report["iterations"]:,} iterations a case, '
                    + ("rows that need no x of others multiplied while it moves" if report["overlap"] else
                       "x moved before any row is multiplied") if report["cases"] else "",
        "Unfinished": "the study did not end: not all cases are here" if not report.get("complete", True) else "",
        "Date": report["date"].replace("T", " ").replace("Z", " UTC"),
    }
    listed = "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in rows.items() if text)
    return f'<dl>{listed}<dt>Command</dt><dd><code>{escape(report["command"])}</code></dd></dl>'


def page(report, plt):
    studies = plot_scaling.studies(report)
    sections = "\n".join(section(plt, study, number) for number, study in enumerate(studies))
    # < would end the element; as an escape it is the same string to every JSON reader.
    data = json.dumps(report, indent=1, ensure_ascii=False).replace("<", "\\u003c")
    what = " and ".join(name for name, key in (("products", "cases"), ("solves", "solves")) if report.get(key))
    kinds = " and ".join(dict.fromkeys(study.scaling.split()[0] for study in studies)).capitalize() + " scaling"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Shardmat: {kinds.lower()} of {escape(", ".join(study.matrix for study in studies))}</title>
<style>{STYLE}</style>
</head>
<body>
<header><h1>{kinds} of sparse {what}</h1>
{facts(report, studies)}</header>
<main>
{sections}
{runs(report)}
<section><h2>How to read this</h2>{HOW_TO_READ}</section>
<section><h2>The figures</h2>
<p>This page holds every figure as JSON, as <code>shardmat bench scaling --json</code> writes it, in the element
<code>#shardmat-report</code>. <code>scaling_html.py</code> and <code>plot_scaling.py</code> draw from it again.</p>
<button type="button">Save as scaling.json</button></section>
</main>
<script type="application/json" id="shardmat-report">{data}</script>
<script>{SAVE}</script>
</body>
</html>
"""


if __name__ == "__main__":
    plots.write_page(__doc__, "scaling", 9, page)
