#!/usr/bin/env python3
"""Draws a report of `shardmat bench solve --json`.

    plot_solve.py solve.json --output solve.svg

A group of bars is a system, a bar a solver: set-up, then the solve. Needs matplotlib (python3-matplotlib).
"""

import plots


def main():
    arguments = plots.arguments(__doc__, "JSON file of shardmat bench solve")
    report = plots.read(arguments.report, "bench solve")
    rows = report["table"]["rows"]
    if not rows:
        plots.fail(f"{arguments.report}: nothing was measured")

    plt = plots.pyplot(arguments.output, 9)
    systems = list(dict.fromkeys(row["matrix"] for row in rows))
    figure, panels = plt.subplots(len(systems), figsize=(7.2, 0.8 + 0.3 * len(rows) + 0.5 * len(systems)), squeeze=False,
                                  height_ratios=[1 + sum(row["matrix"] == system for row in rows) for system in systems])
    for system, axes in zip(systems, panels[:, 0]):
        some = [row for row in rows if row["matrix"] == system]
        places = range(len(some))
        set_up = [1e3 * (row["set_up_s"] or 0) for row in some]
        solve = [1e3 * row["solve_s"] for row in some]
        axes.barh(places, set_up, 0.7, color="C7", label="set-up")
        bars = axes.barh(places, solve, 0.7, left=set_up, color=["C0" if row["own"] else "C1" for row in some], label="solve")
        labels = [f"{1e3 * row['whole_s']:,.1f}" + ("" if row["right"] else " WRONG") for row in some]
        axes.bar_label(bars, labels, padding=2, fontsize=7)
        axes.set_yticks(places, [row["solver"] for row in some])
        axes.invert_yaxis()
        axes.margins(x=0.12)
        axes.set_title(system, fontsize=8, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
    clock = "CPU time" if report["clock"] == "cpu" else "wall time"
    panels[-1, 0].set_xlabel(f"{clock} of an answer, ms: set-up (grey), then the solve (blue: Shardmat)")
    figure.suptitle(plots.heading(report), fontsize=9)
    figure.tight_layout()
    plots.save(figure, arguments.output)


if __name__ == "__main__":
    main()
