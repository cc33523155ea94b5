#!/usr/bin/env python3
"""Writes a report of `shardmat bench papers --json` as one HTML page that needs no other file and no network.

    papers_html.py papers.json --output papers.html

The page holds the figures (those of plot_papers.py), all tables as they were printed, and the JSON report itself, in the
element with the id shardmat-report. Needs matplotlib (python3-matplotlib).
"""

import json
import re
from html import escape

import plot_papers
import plots
from page_style import STYLE

PAPERS = {
    "1": "Batched products of small matrices (Nagasaka, Nukada, Kojima, Matsuoka)",
    "2": "Formats by class of matrix (course text: parallel patterns)",
    "3": "CRS on several GPUs (Okada, Okamoto, Imamura)",
    "4": "Cache suitability and Fold (Tomimori, Tanabe, Takata, Joe)",
    "5": "Row block packing (Kawamura, Yoneda, Iwamura, Watanabe, Inoguchi)",
}


def picture(plt, draw, tables, number):
    """The drawing as an <svg> element."""
    figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
    draw(axes, tables)
    return plots.inline_svg(figure, plt, number)


def table(name, report):
    shown, notes = report["printed"][name], report["tables"][name]["notes"]
    if not shown["rows"]:
        return ""
    words = [not re.match(r"[-−\d–]", row) for row in shown["rows"][0]]
    css = [' class="word"' if word else "" for word in words]
    head = "".join(f'<th{c} scope="col">{escape(text)}</th>' for c, text in zip(css, shown["headings"]))
    body = "\n".join("<tr>" + "".join(f"<td{c}>{escape(text)}</td>" for c, text in zip(css, row)) + "</tr>" for row in shown["rows"])
    title = escape(report["tables"][name]["title"])
    return (f'<h3>{title}</h3><p class="soft">{escape(" ".join(notes))}</p>'
            f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>')


def section(plt, number, report):
    names = [name for name in report["tables"] if name.startswith(f"paper_{number}")]
    tables = "".join(table(name, report) for name in names)
    drawn = [one for one in plot_papers.panels(report) if one[0].startswith(f"Paper {number}")]
    if not tables:
        return ""
    figures = "".join(f'<figure><figcaption>{escape(caption)}</figcaption>{picture(plt, draw, report["tables"], f"{number}{i}")}'
                      f'<p class="soft">{escape(printed)}</p></figure>' for i, (caption, printed, draw) in enumerate(drawn))
    return f'<section><h2>Paper {number}. {escape(PAPERS[number])}</h2><div class="pictures">{figures}</div>{tables}</section>'


def page(report, plt):
    machine = report["machine"]
    facts = {"Processor": machine["processor"], "Host": machine["host"], "Backend": machine["backend"],
             "Threads of the host": str(machine["threads"]), "Software": machine["software"],
             "Copy bandwidth": f'{machine["copy_bandwidth_bytes_per_s"] / 1e9:,.1f} GB/s',
             "Measured": f'medians of {report["repetitions"]} products',
             "Missing kernels": ", ".join(report["missing_kernels"]), "Wrong results": ", ".join(report["wrong"]),
             "Unfinished": plots.unfinished(report).strip(" ()")}
    listed = "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in facts.items() if text)
    data = json.dumps(report, indent=1, ensure_ascii=False).replace("<", "\\u003c")
    matrices = table("matrices", report) if "matrices" in report["tables"] else ""
    sections = "\n".join(section(plt, number, report) for number in PAPERS)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Shardmat: the papers, measured</title>
<style>{STYLE}
.pictures {{ grid-template-columns: repeat(auto-fit, minmax(28rem, 1fr)); }}</style>
</head>
<body>
<header><h1>The papers, measured on this machine</h1><dl>{listed}</dl></header>
<main>
{matrices}
{sections}
<p class="soft">This page holds every figure as JSON, as <code>shardmat bench papers --json</code> writes it, in the element
<code>#shardmat-report</code>.</p>
</main>
<script type="application/json" id="shardmat-report">{data}</script>
</body>
</html>
"""


if __name__ == "__main__":
    plots.write_page(__doc__, "papers", 8, page)
