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

# What matplotlib draws with, and what the page makes of it.
COLORS = {"#000000": "currentColor", "#ffffff": "var(--paper)", "#2f6f9f": "var(--blue)", "#e3a34a": "var(--amber)",
          "#4f9a5b": "var(--green)", "#a33a3a": "var(--red)"}

STYLE = plots.svg_colors(COLORS) + """
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2126; --soft: #5d6873; --line: #dde2e7; --tint: #f4f6f8;
  --blue: #2f6f9f; --amber: #e0992f; --green: #4f9a5b; --red: #b04141; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181c; --ink: #e6eaee; --soft: #9aa6b1; --line: #2e363e;
  --tint: #1c2228; --blue: #5b9fd3; --amber: #e3a953; --green: #6fbd7c; --red: #d96c6c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 3rem 1.5rem 4rem; max-width: 74rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; }
h1 { margin: 0; font-size: 2rem; line-height: 1.2; letter-spacing: -.015em; }
h2 { margin: 3.5rem 0 .2rem; font-size: 1.35rem; line-height: 1.3; overflow-wrap: anywhere; }
h3 { margin: 1.8rem 0 .3rem; font-size: 1rem; }
p, dd { max-width: 46rem; }
.soft, dt, caption, th { color: var(--soft); }
.kind { display: inline-block; margin-left: .5rem; padding: 0 .6em; border: 1px solid currentColor; border-radius: 1em;
  color: var(--blue); font-size: .8rem; font-weight: 600; line-height: 1.6; vertical-align: .15em; white-space: nowrap; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.5rem; margin: 1.6rem 0 0; }
dd { margin: 0; overflow-wrap: anywhere; }
code { font: .88em/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(19rem, 1fr)); gap: 1.2rem 2rem; margin: 1.4rem 0; }
figure { margin: 0; break-inside: avoid; }
figcaption { font-size: .9rem; font-weight: 600; }
svg { display: block; width: 100%; height: auto; overflow: visible; fill: currentColor; }
svg text { font-family: inherit !important; }
.table { overflow-x: auto; margin: 1rem 0; }
table { width: 100%; border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
caption { padding-bottom: .3rem; text-align: left; }
th, td { padding: .3rem .6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th { border-bottom: 2px solid var(--line); font-weight: 600; white-space: normal; vertical-align: bottom; line-height: 1.3; }
td.word { white-space: normal; }
th:first-child, td:first-child { padding-left: .2rem; }
tbody tr:hover { background: var(--tint); }
.word { text-align: left; }
td.long { white-space: normal; text-align: left; color: var(--red); }
.notes { max-width: 46rem; border-left: 3px solid var(--amber); padding: .2rem 1rem; }
.notes ul { margin: .2rem 0; padding-left: 1.2rem; }
button { padding: .3rem .9rem; border: 1px solid var(--line); border-radius: .4rem; background: var(--tint);
  color: inherit; font: inherit; cursor: pointer; }
@media print {
  :root { color-scheme: light; --paper: #fff; --ink: #000; --soft: #444; --line: #bbb; --tint: #fff;
    --blue: #2f6f9f; --amber: #e0992f; --green: #4f9a5b; --red: #b04141; }
  @page { margin: 15mm; }
  body { max-width: none; padding: 0; font-size: 9.5pt; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  h1 { font-size: 1.6rem; }
  h2 { margin-top: 2rem; }
  .pictures { grid-template-columns: repeat(3, 1fr); gap: 1rem; }
  table { font-size: 7.5pt; }
  th, td { padding: .2rem .35rem; }
  .table { overflow: visible; break-inside: avoid; }
  h2, h3, caption { break-after: avoid; }
  tr { break-inside: avoid; }
  button { display: none; }
}
"""

CAPTIONS = {"time": "Time of an iteration", "efficiency": "Efficiency", "breakdown": "Where the time goes"}

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


def time(seconds):
    unit, factor = plot_scaling.unit_of(seconds)
    return f"{factor * seconds:.{1 if unit == 'µs' else 2}f}\u00a0{unit}"


def size(count):
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.3g}\u00a0{unit}"
    return f"{count:.0f}\u00a0B"


def picture(plt, draw, study, number):
    """The drawing as an <svg> element in the colours of the page."""
    figure, axes = plt.subplots(figsize=(3.4, max(2.5, 1.1 + 0.2 * len(study.cases))), layout="constrained")
    draw(axes, study)
    return plots.inline_svg(figure, plt, number)


def table(caption, columns, cases, cells):
    """`columns`: headings, those of words ending in "<"; a case without figures has a reason in their place."""
    css = [' class="word"' if name.endswith("<") else "" for name in columns]
    rows = []
    for case in cases:
        known = [str(case["ranks"]), escape(case["exchange_asked"] if case["ranks"] > 1 else "none")]
        if "report" in case:
            row = [f"<td{c}>{cell}</td>" for c, cell in zip(css, [*known, *cells(case)])]
        else:
            row = [f"<td{c}>{cell}</td>" for c, cell in zip(css, known)]
            row.append(f'<td class="long" colspan="{len(columns) - 2}">{escape(case["why_not"])}</td>')
        rows.append("<tr>" + "".join(row) + "</tr>")
    heading = "".join(f'<th{c} scope="col">{name.rstrip("<")}</th>' for c, name in zip(css, columns))
    return (f'<div class="table"><table><caption>{caption}</caption><thead><tr>{heading}</tr></thead><tbody>'
            + "\n".join(rows) + "</tbody></table></div>")


def times(case):
    report, parts = case["report"], case["breakdown"]
    spread = report["iteration"]
    return [f'<b>{time(spread["median_s"])}</b>', time(parts["product_s"]), time(parts["imbalance_s"]),
            time(parts["waiting_s"]), time(report["exchange_alone"]["median_s"]),
            f'{time(spread["min_s"])} … {time(spread["max_s"])}', f'<b>{100 * case["efficiency"]:.1f} %</b>',
            f'{report["gflops"]:,.1f}']


def setup(case):
    report = case["report"]
    hosts, threads = len({rank["host"] for rank in report["ranks"]}), report["threads_per_rank"]
    of_copy = report["bandwidth_bytes_per_s"]["mean"] / report["copy_bandwidth_bytes_per_s"]["mean"]
    kernels = ", ".join(dict.fromkeys(kernel for rank in report["ranks"] for kernel in rank["kernel"].split("; ")))
    return [escape(report["exchange"]["name"]), str(hosts), str(threads), escape(kernels),
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


def notes(cases):
    """What makes figures doubtful, a line each."""
    lines = "".join(f'<li>{case["ranks"]} rank{"s" * (case["ranks"] > 1)}, '
                    f'<code>{escape(case["report"]["exchange"]["name"])}</code>: {escape(note)}</li>'
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
            svg = picture(plt, draw, study, f"{number}{name}")
            parts.append(f"<figure><figcaption>{CAPTIONS[name]}</figcaption>{svg}</figure>")
        parts.append("</div>")
    parts.append(table("Times: iteration = product + imbalance + waiting",
                       ("ranks", "exchange asked<", "iteration", "product", "imbalance", "waiting for x", "exchange alone",
                        "iterations from … to", "efficiency", "GFLOP/s"), study.all, times))
    parts.append(notes(study.cases))
    if study.cases:
        parts.append(table("What was run",
                           ("ranks", "exchange asked<", "taken<", "hosts", "threads a rank", "kernels<", "nonzeros a rank",
                            "most of a rank / mean", "x received, most of a rank", "multiplied while x moves", "of a copy",
                            "memory, most of a rank", "verified<"), study.cases, setup))
    return "\n".join(parts) + "</section>"


def facts(report, studies):
    places = [rank for study in studies for case in study.cases for rank in case["report"]["ranks"]]
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
                       "x moved before any row is multiplied"),
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
<header><h1>{kinds} of sparse products</h1>
{facts(report, studies)}</header>
<main>
{sections}
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
