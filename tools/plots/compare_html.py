#!/usr/bin/env python3
"""Writes a report of `shardmat compare --json` as one HTML page that needs no other file and no network.

    compare_html.py compare.json --output compare.html

A bar for each time shows its change with the 90 % interval. The page is light or dark as the reader likes, and holds the JSON
report itself, in the element with the id shardmat-report.
"""

import json
import math
from html import escape

import plots
from page_style import STYLE, time

OWN_STYLE = """
.slower { color: var(--red); }
.faster { color: var(--green); }
.bar { position: relative; display: inline-block; width: 9rem; height: 1em; vertical-align: -.15em; }
.bar i { position: absolute; top: 0; bottom: 0; width: 1px; left: 50%; background: var(--soft); }
.bar b { position: absolute; top: .35em; height: .3em; min-width: 2px; border-radius: .15em; background: currentColor; opacity: .45; }
.bar u { position: absolute; top: .15em; width: .7em; height: .7em; margin-left: -.35em; border-radius: 50%; background: currentColor; }
"""

WORDS = {"slower": "slower", "faster": "faster", "same": "the same within the interval", "one time each": "one time each",
         "only before": "only before", "only now": "only now"}


def percent(ratio):
    return f"{100 * (ratio - 1):+.1f}\u00a0%"


def bar(entry, widest):
    """The change on a scale of logarithms, no change in the middle."""
    def place(ratio):
        return 50 + 48 * max(-1, min(1, math.log(ratio) / widest))
    low, high = (place(entry.get(key, entry["ratio"])) for key in ("ratio_low", "ratio_high"))
    return (f'<span class="bar"><i></i><b style="left:{low:.1f}%;width:{high - low:.1f}%"></b>'
            f'<u style="left:{place(entry["ratio"]):.1f}%"></u></span>')


def row(entry, widest):
    cells = {"what": escape(entry["what"])}
    for side in ("before", "now"):
        cells[side] = time(entry[side]["median_s"]) if entry[side] else "–"
    cells["change"] = percent(entry["ratio"]) if "ratio" in entry else ""
    cells["interval"] = f'{percent(entry["ratio_low"])} … {percent(entry["ratio_high"])}' if "ratio_low" in entry else ""
    cells["from"] = entry.get("interval", "") if entry.get("interval") != "none" else ""
    cells["picture"] = bar(entry, widest) if "ratio" in entry else ""
    cells["verdict"] = WORDS[entry["verdict"]]
    names = {"what": "what", "before": "before", "now": "now", "change": "change", "interval": "90 % interval", "from": "from",
             "picture": "shorter | longer", "verdict": "verdict"}
    css = {"what": ' class="word"', "verdict": f' class="word {entry["verdict"].split()[0]}"',
           "picture": f' class="{entry["verdict"].split()[0]}"'}
    return "<tr>" + "".join(f'<td{css.get(key, "")} data-label="{names[key]}">{cell}</td>' for key, cell in cells.items()) + "</tr>"


def table(of, entries, widest):
    head = "".join(f'<th scope="col"{css}>{name}</th>' for name, css in
                   (("what", ' class="word"'), ("before", ""), ("now", ""), ("change", ""), ("90 % interval", ""), ("from", ""),
                    ("shorter | longer", ""), ("verdict", ' class="word"')))
    rows = "\n".join(row(entry, widest) for entry in entries)
    return (f'<section><h2>{escape(of)}</h2><div class="table cards"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody>'
            "</table></div></section>")


def side(label, report):
    return (f'<dt>{label}</dt><dd>{escape(report["file"])}: shardmat {escape(report["program"])}, '
            f'{escape(report["date"].replace("T", " ").replace("Z", " UTC"))}, on {escape(report["host"])}<br>'
            f'<code>{escape(report["command"])}</code></dd>')


def conclusion(report):
    counts = {}
    for entry in report["times"]:
        counts[entry["verdict"]] = counts.get(entry["verdict"], 0) + 1
    text = ", ".join(f'<b class="{word.split()[0]}">{count}</b> {WORDS[word]}' for word, count in counts.items())
    if report["fail_above"] is not None:
        text += (f'. Longer than allowed, by more than {100 * report["fail_above"]:g}\u00a0%: '
                 f'<b>{report["slower_than_allowed"]}</b>')
    doubts = "".join(f"<li>{escape(doubt)}</li>" for doubt in report["doubts"])
    return (f'<p>Of {len(report["times"])} times: {text}.</p>'
            + (f'<div class="notes"><b>Other than the program differs</b><ul>{doubts}</ul></div>' if doubts else ""))


def page(report):
    both = [entry for entry in report["times"] if "ratio" in entry]
    ends = [abs(math.log(entry.get(key, entry["ratio"]))) for entry in both for key in ("ratio_low", "ratio_high")]
    widest = max([math.log(1.1), *ends])
    groups = {}
    for entry in report["times"]:
        groups.setdefault(entry["of"], []).append(entry)
    tables = "\n".join(table(of, entries, widest) for of, entries in groups.items())
    # < would end the element; as an escape it is the same string to every JSON reader.
    data = json.dumps(report, indent=1, ensure_ascii=False).replace("<", "\\u003c")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Shardmat: what became slower</title>
<style>{STYLE}{OWN_STYLE}</style>
</head>
<body>
<header><h1>What became slower: {escape(report["kind"])}</h1>
<dl>{side("Before", report["before"])}{side("Now", report["now"])}</dl>
{conclusion(report)}</header>
<main>
{tables}
<section><h2>How to read this</h2>
<p>{escape(report["intervals"])}</p>
<p>The dot is the change of the median, on a scale of logarithms that ends at {math.exp(widest):.3g} times; the line is the
interval. <b class="slower">Slower</b> and <b class="faster">faster</b>: the interval lies on one side of no change.</p></section>
</main>
<script type="application/json" id="shardmat-report">{data}</script>
</body>
</html>
"""


def main():
    arguments = plots.arguments(__doc__, "JSON file of shardmat compare", "HTML file to write")
    text = page(plots.read(arguments.report, "compare"))
    with open(arguments.output, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
