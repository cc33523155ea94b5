#!/usr/bin/env python3
"""Draws a report of `shardmat bench solve --json`.

    plot_solve.py solve.json --output solve.svg

A group of bars is a system: the time of one iteration of our solver, of the same solver with plain CSR inside, and of the
peer. Needs matplotlib (python3-matplotlib).
"""

import argparse

import plots


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", help="JSON file of shardmat bench solve")
    parser.add_argument("--output", required=True, help="picture to write (.svg, .png or .pdf)")
    arguments = parser.parse_args()
    report = plots.read(arguments.report, "bench solve")
    rows = report["table"]["rows"]
    if not rows:
        plots.fail(f"{arguments.report}: nothing was measured")

    plt = plots.pyplot(arguments.output, 9)
    figure, axes = plt.subplots(figsize=(7.2, 0.6 + 0.6 * len(rows)))
    peers = list(dict.fromkeys(row["peer"] for row in rows if row["peer"]))
    kinds = [("microseconds", "Shardmat", "C0"), ("csr", "with plain CSR inside", "C7"),
             ("peer_microseconds", " or ".join(peers), "C1")]
    for place, (key, label, color) in enumerate(kinds):
        found = [(i, row[key]) for i, row in enumerate(rows) if row[key]]
        if not found:
            continue
        bars = axes.barh([i + 0.27 * (place - 1) for i, _ in found], [time for _, time in found], 0.25, color=color, label=label)
        axes.bar_label(bars, [f"{time:,.0f}" for _, time in found], padding=2, fontsize=7)
    names = [f"{row['matrix']}\n{row['solver']}" + (f", {row['columns']} columns" if row["columns"] > 1 else "") for row in rows]
    axes.set_yticks(range(len(rows)), names)
    axes.invert_yaxis()
    axes.margins(x=0.1)
    axes.set_xlabel("time of an iteration, µs")
    figure.suptitle(plots.heading(report), fontsize=9)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    axes.spines[["top", "right"]].set_visible(False)
    plots.save(figure, arguments.output)


if __name__ == "__main__":
    main()
