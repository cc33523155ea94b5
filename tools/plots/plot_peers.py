#!/usr/bin/env python3
"""Draws a report of `shardmat bench kernels|spmm|batched --peers --json`.

    plot_peers.py peers.json --output peers.svg

A bar is the time of the fastest peer over ours; above 1 we are faster. The line on it is the interval of 90 %, the name above
it is the peer. A diamond is the ratio to the fastest peer that stores half of a symmetric matrix. Needs matplotlib
(python3-matplotlib).
"""

import math

import plots

COLOURS = ["#2f6f9f", "#e3a34a", "#7fb3d0", "#f0d3a3", "#5d8a4a", "#a35d8a"]
COLUMNS = 3  # of the legend


def label(case):
    """What a group of bars is of: the types stand side by side in it."""
    parts = [case["work"]["name"]]
    if case["rhs"] > 1:
        parts.append(f'{case["rhs"]} columns' + (" by column" if case["order"] == "column" else ""))
    if case["threads"] > 1:
        parts.append(f'{case["threads"]} threads')
    return "\n".join(parts)


def bars_of(report):
    """{(kernel that was asked for, type): {label: our kernel}}, each kernel that was compared with anything."""
    bars = {}
    for case in report["cases"]:
        for own in case["ours"]:
            if own["best_peer"] or own["best_symmetric_peer"]:
                bars.setdefault((own["asked"], case["type"]), {})[label(case)] = own
    return bars


def draw(axes, places, own, colour, shift, width):
    for name, kernel in own.items():
        x = places[name] + shift
        best, half = kernel["best_peer"], kernel["best_symmetric_peer"]
        if best:
            axes.bar(x, best["ratio"], 0.92 * width, color=colour,
                     yerr=[[best["ratio"] - best["low"]], [best["high"] - best["ratio"]]],
                     error_kw={"linewidth": 1, "capsize": 2})
            axes.annotate(best["peer"], (x, best["high"]), (0, 5), textcoords="offset points", rotation=90, ha="center",
                          va="bottom", fontsize=7)
        if half:
            axes.plot(x, half["ratio"], "D", color="white", markeredgecolor="black", markersize=5)


def main():
    arguments = plots.arguments(__doc__, "JSON file of shardmat bench kernels, spmm or batched with --peers")
    report = plots.read(arguments.report, "bench kernels|spmm|batched --peers")
    bars = bars_of(report)
    if not bars:
        plots.fail(f"{arguments.report}: nothing was measured that could be compared")

    plt = plots.pyplot(arguments.output, 9)
    names = list(dict.fromkeys(label(case) for case in report["cases"]))
    width = 0.8 / len(bars)
    figure, axes = plt.subplots(figsize=(max(6.5, 1.6 + (0.5 + 0.3 * len(bars)) * len(names)), 4.8))
    places = {name: i for i, name in enumerate(names)}
    handles = []
    for i, ((asked, type_name), own) in enumerate(bars.items()):
        colour = COLOURS[i % len(COLOURS)]
        draw(axes, places, own, colour, (i - (len(bars) - 1) / 2) * width, width)
        handles.append(plt.Rectangle((0, 0), 1, 1, color=colour, label=f"{asked}, {type_name}"))
    if any(kernel["best_symmetric_peer"] for own in bars.values() for kernel in own.values()):
        handles.append(plt.Line2D([], [], marker="D", color="white", markeredgecolor="black", linestyle="none", markersize=5,
                                  label="over peers that store half"))
    axes.set_ylim(0, 1.35 * max(1, axes.get_ylim()[1]))  # names stand above the bars
    axes.axhline(1, color="black", linestyle="dashed", linewidth=1, zorder=0)
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.set_ylabel("time of the fastest peer over ours")
    axes.set_title(plots.heading(report), fontsize=9, pad=10 + 14 * math.ceil(len(handles) / COLUMNS))
    axes.legend(handles=handles, frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1), borderaxespad=0.2,
                ncols=COLUMNS)
    axes.spines[["top", "right"]].set_visible(False)
    plots.save(figure, arguments.output)


if __name__ == "__main__":
    main()
