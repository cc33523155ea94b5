#!/usr/bin/env python3
"""Draws how answers of a report of `shardmat bench solve --json` come near.

    plot_answers.py solve.json --output answers.svg [--titles TITLE …]

A panel is a system, a line a solver: |b - A x| / |b| as the method updates it over the time since its set-up began. The dot ends
the set-up. All iterations of a solve are given the same time. Needs matplotlib (python3-matplotlib).
"""

import argparse
import textwrap

import plots

GREY = "#7d7d7d"  # this and the colours are read on white pages and on dark ones; the background is the page's
COLOURS = {True: ("#2f7fe0", "#12a5b5"), False: ("#e0731d", "#a45ee5", "#2f9e55", "#d6568c", "#9a8420")}  # own, others
DECADES_A_LABEL = 1.35  # below the lines


def colours(rows):
    """Of each solver: the same in all panels."""
    found = {}
    for own, some in COLOURS.items():
        names = list(dict.fromkeys(row["solver"] for row in rows if row["own"] == own))
        found |= {name: some[i % len(some)] for i, name in enumerate(names)}
    return found


def label(row, alone):
    """Of a line. Of our solvers the preconditioner is told if there are several."""
    name = row["solver"].split()[0] if row["own"] and alone else row["solver"]
    return f'{name} {row["whole_s"]:#.3g} s' + ("" if row["right"] else " WRONG")


def counted(number, noun):
    return f'{number} {noun}' + ("" if number == 1 else "s")


def draw(axes, rows, colour, rtol, title):
    end = max(row["history"]["seconds"][-1] for row in rows)
    lowest, highest = 0.03 * rtol, 1
    alone = sum(row["own"] for row in rows) == 1
    for place, row in enumerate(sorted(rows, key=lambda row: row["whole_s"])):
        shade, order = colour[row["solver"]], 3 + len(rows) - place
        seconds, residual = row["history"]["seconds"], [value or None for value in row["history"]["residual"]]
        axes.plot([0, seconds[0]], [1, 1], color=shade, linewidth=1.3, linestyle=(0, (2, 1.5)), zorder=order)
        axes.plot(seconds[:1], [1], "o", color=shade, markersize=4.5, zorder=order)
        axes.plot(seconds, residual, color=shade, linewidth=2.4 if row["own"] else 1.6, zorder=order)
        share = seconds[-1] / end
        side, shift = ("left", -3) if share < 0.4 else ("center", 0) if share < 0.7 else ("right", 3)
        axes.annotate(label(row, alone), (seconds[-1], lowest), (shift, 0), textcoords="offset points",
                      color=shade, ha=side, va="center", fontsize=8.5,
                      fontweight="bold" if row["own"] else None)
        lowest *= 10**-DECADES_A_LABEL
        highest = max(highest, *(value for value in residual if value))
    axes.set_yscale("log")
    axes.set_ylim(lowest, 10 * highest)
    axes.set_xlim(0, 1.06 * end)
    axes.set_yticks([value for value in (1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12) if value >= 0.99 * rtol])
    axes.minorticks_off()
    axes.locator_params(axis="x", nbins=5)
    axes.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.5)
    axes.set_title(title, fontsize=9, loc="left", color=GREY)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", help="JSON file of shardmat bench solve")
    parser.add_argument("--output", required=True, help="picture to write (.svg, .png or .pdf)")
    parser.add_argument("--titles", nargs="+", default=[], metavar="TITLE", help="of the systems (default: their names)")
    arguments = parser.parse_args()
    report = plots.read(arguments.report, "bench solve")
    rows = [row for row in report["table"]["rows"] if row.get("history")]
    if not rows:
        plots.fail(f"{arguments.report}: it holds no residuals over time")
    systems = list(dict.fromkeys(row["matrix"] for row in rows))
    if arguments.titles and len(arguments.titles) != len(systems):
        plots.fail(f"{arguments.report}: it has {len(systems)} systems; give as many titles, not {len(arguments.titles)}")

    plt = plots.pyplot(arguments.output, 8.5)
    plt.rcParams.update(dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.edgecolor"), GREY))
    wide = min(3, len(systems))
    high = -(-(len(systems) + (wide > 1)) // wide)  # a cell for the notes
    figure, panels = plt.subplots(high, wide, figsize=(3.1 * wide, 2.5 * high), squeeze=False)
    colour = colours(rows)
    for number, (system, axes) in enumerate(zip(systems, panels.flat)):
        some = [row for row in rows if row["matrix"] == system]
        title = arguments.titles[number] if arguments.titles else textwrap.fill(system.replace(":", ": ").replace(",", ", "), 36)
        draw(axes, some, colour, report["rtol"] or 1e-12, f'{title}\n{some[0]["rows"]:,} unknowns, {some[0]["nnz"]:,} nonzeros')
    for axes in panels.flat:
        axes.patch.set_alpha(0)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in list(panels.flat)[len(systems):]:
        axes.axis("off")
    clock = "CPU time" if report["clock"] == "cpu" else "wall time"
    notes = (f"|b − Ax| / |b| over {clock}.\nDashed: set-up. Dot: the solve begins.\n"
             f"{report['method']} to {report['rtol']:g}, b = 1, f64; {counted(report['ranks'], 'rank')} of {counted(report['threads'], 'thread')}.\n"
             + plots.heading(report))
    if len(systems) < high * wide:
        list(panels.flat)[-1].text(0, 0.95, "\n".join(textwrap.fill(line, 44) for line in notes.splitlines()), va="top", fontsize=8.5, linespacing=1.5)
    else:
        figure.suptitle(notes, fontsize=8.5)
    for column in panels.T:
        [axes for axes in column if axes.axison][-1].set_xlabel("seconds")
    for axes in panels[:, 0]:
        axes.set_ylabel("residual")
    figure.patch.set_alpha(0)
    plots.save(figure, arguments.output)


if __name__ == "__main__":
    main()
