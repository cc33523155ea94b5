#!/usr/bin/env python3
"""Draws a report of `shardmat bench scaling --json`.

    plot_scaling.py scaling.json --output scaling.svg

A row a matrix: time of an iteration over the number of ranks, one line an exchange, dashed perfect scaling, and crosses what was predicted; the share of
perfect scaling that was reached; what an iteration is spent on. Where systems were solved, another row: set-up and solve (dotted:
the set-up alone), and the iterations. Hollow marks, and stars behind times, are of cases with a
note that makes their figures doubtful; the report holds the notes. Needs matplotlib (python3-matplotlib).
"""

import plots
from page_style import unit_of

COLORS = ("#2f6f9f", "#e3a34a", "#4f9a5b", "#a33a3a")
PARTS = {"product_s": ("product", "#2f6f9f"), "imbalance_s": ("imbalance", "#a33a3a"),
         "waiting_s": ("waiting for x", "#e3a34a")}


def time(case):
    return case["report"]["iteration"]["median_s"]


class Study:
    """What was measured of one matrix: `first` is the case that efficiency is measured against, `lines` the others of each
    exchange with it before them."""

    def __init__(self, report, matrix):
        self.matrix, self.type = matrix, report["type"]
        self.all = [case for case in report["cases"] if case["matrix"] == matrix]
        self.cases = [case for case in self.all if "report" in case]
        self.solves = [case for case in report.get("solves", []) if case["matrix"] == matrix]
        self.solved = [case for case in self.solves if "report" in case]
        self.weak = [*self.all, *self.solves][0]["weak"]
        self.scaling = "weak scaling" if self.weak else "strong scaling"
        threads = report.get("threads_per_rank")
        self.threads = f', {threads} thread{"s" * (threads > 1)} a rank' if threads else ""
        if not self.cases:
            return
        base = self.cases[0]["base_ranks"]
        self.first = min((case for case in self.cases if case["ranks"] == base), key=time)
        more = [case for case in self.cases if case["ranks"] > base]
        exchanges = dict.fromkeys(case["exchange_asked"] for case in more or [self.first])
        self.lines = {e: [self.first, *(case for case in more if case["exchange_asked"] == e)] for e in exchanges}
        self.ranks = sorted({case["ranks"] for case in self.cases})
        self.device = self.first["report"]["ranks"][0]["device"]

    def perfect(self, ranks):
        return time(self.first) * (1 if self.weak else self.first["ranks"] / ranks)


def studies(report):
    cases = [*report["cases"], *report.get("solves", [])]
    return [Study(report, matrix) for matrix in dict.fromkeys(case["matrix"] for case in cases)]


def over_ranks(axes, ranks):
    axes.set_xscale("log", base=2)
    axes.set_xticks(ranks, [str(p) for p in ranks])
    axes.minorticks_off()
    axes.set_xlabel("ranks")
    axes.spines[["top", "right"]].set_visible(False)


def doubtful(case):
    return bool(case.get("notes"))


def mark_doubtful(axes, cases, height, color):
    points = [(case["ranks"], height(case)) for case in cases if doubtful(case)]
    if points:
        axes.plot(*zip(*points), "o", color=color, markerfacecolor="white", markersize=6, clip_on=False, zorder=3)


def draw_time(axes, study):
    unit, factor = unit_of(min(time(case) for case in study.cases))
    axes.plot(study.ranks, [factor * study.perfect(p) for p in study.ranks], "--", color="black", linewidth=1,
              label="perfect: constant" if study.weak else "perfect: 1/ranks")
    for color, (exchange, cases) in zip(COLORS, study.lines.items()):
        axes.plot([case["ranks"] for case in cases], [factor * time(case) for case in cases], "o-", color=color,
                  markersize=4, label=exchange)
        mark_doubtful(axes, cases, lambda case: factor * time(case), color)
    foretold = [(case["ranks"], factor * case["forecast"]["iteration_s"]) for case in study.cases if "forecast" in case]
    if foretold:
        axes.plot(*zip(*foretold), "x", color="black", markersize=6, markeredgewidth=1.2, label="predicted", zorder=4)
    if study.weak:
        axes.set_ylim(0, 1.3 * max([factor * time(case) for case in study.cases] + [seconds for _, seconds in foretold]))
    else:
        axes.set_yscale("log")
        plots.label_logarithms(axes.yaxis)
    axes.set_ylabel(f"{unit} an iteration")
    axes.legend(frameon=False, fontsize="small")
    over_ranks(axes, study.ranks)


def draw_efficiency(axes, study):
    for color, cases in zip(COLORS, study.lines.values()):
        axes.plot([case["ranks"] for case in cases], [100 * case["efficiency"] for case in cases], "o-", color=color,
                  markersize=4)
        mark_doubtful(axes, cases, lambda case: 100 * case["efficiency"], color)
    axes.axhline(100, linestyle="--", color="black", linewidth=1)
    axes.set_ylim(0, max(108, *(105 * case["efficiency"] for case in study.cases)))
    axes.set_ylabel("% of constant time" if study.weak else "% of perfect speed-up")
    over_ranks(axes, study.ranks)


def draw_breakdown(axes, study):
    positions = range(len(study.cases))
    labels = [f'{case["ranks"]}' + (f' {case["report"]["exchange"]["name"]}' if case["ranks"] > 1 else "")
              for case in study.cases]
    wholes = [sum(case["breakdown"].values()) for case in study.cases]
    left = [0] * len(study.cases)
    for part, (label, color) in PARTS.items():
        shares = [100 * case["breakdown"][part] / whole for case, whole in zip(study.cases, wholes)]
        axes.barh(positions, shares, 0.7, left=left, color=color, label=label)
        left = [a + b for a, b in zip(left, shares)]
    for position, case in zip(positions, study.cases):
        unit, factor = unit_of(time(case))
        axes.text(102, position, f"{factor * time(case):.3g} {unit}" + " *" * doubtful(case), va="center", fontsize="small")
    axes.set_yticks(positions, labels)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(study.cases) - 0.4, -0.6)
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of an iteration")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.legend(frameon=False, fontsize="small", ncol=3, loc="lower left", bbox_to_anchor=(-0.02, 1), borderaxespad=0,
                columnspacing=1, handlelength=1)


def draw_solves(axes, study):
    """Set-up and solve over the ranks, a line a preconditioner; dashed: the set-up alone."""
    unit, factor = unit_of(min(case["whole_s"] for case in study.solved))
    for color, asked in zip(COLORS, dict.fromkeys(case["preconditioner_asked"] for case in study.solved)):
        cases = [case for case in study.solved if case["preconditioner_asked"] == asked]
        ranks = [case["ranks"] for case in cases]
        axes.plot(ranks, [factor * case["whole_s"] for case in cases], "o-", color=color, markersize=4, label=preconditioner(cases))
        axes.plot(ranks, [factor * case["set_up_s"] for case in cases], ":", color=color, linewidth=1)
        mark_doubtful(axes, cases, lambda case: factor * case["whole_s"], color)
        first = cases[0]
        perfect = [factor * first["whole_s"] * (1 if study.weak else first["ranks"] / p) for p in ranks]
        axes.plot(ranks, perfect, "--", color=color, linewidth=0.8)
    axes.set_ylim(0)
    axes.set_ylabel(f"{unit}, set-up and solve")
    axes.legend(frameon=False, fontsize="small")
    over_ranks(axes, sorted({case["ranks"] for case in study.solved}))


def preconditioner(cases):
    """As asked for, with what auto took."""
    asked = cases[0]["preconditioner_asked"]
    taken = list(dict.fromkeys(case["report"]["solver"]["preconditioner"] for case in cases))
    return f'auto: {", ".join(taken)}' if asked == "auto" else asked


def draw_iterations(axes, study):
    for color, asked in zip(COLORS, dict.fromkeys(case["preconditioner_asked"] for case in study.solved)):
        cases = [case for case in study.solved if case["preconditioner_asked"] == asked]
        axes.plot([case["ranks"] for case in cases], [case["iterations"] for case in cases], "o-", color=color, markersize=4)
    axes.set_ylim(0)
    axes.set_ylabel("iterations of a solve")
    over_ranks(axes, sorted({case["ranks"] for case in study.solved}))


PICTURES = {"time": draw_time, "efficiency": draw_efficiency, "breakdown": draw_breakdown}
PICTURES_OF_SOLVES = {"solves": draw_solves, "iterations": draw_iterations}


def main():
    arguments = plots.arguments(__doc__, "JSON file of shardmat bench scaling")
    report = plots.read(arguments.report, "bench scaling")
    everything = studies(report)
    drawn = [(study, PICTURES, study.first) for study in everything if study.cases]
    drawn += [(study, PICTURES_OF_SOLVES, study.solved[0]) for study in everything if study.solved]
    if not drawn:
        plots.fail(f"{arguments.report}: nothing was measured")

    plt = plots.pyplot(arguments.output, 9)
    heights = [max(2.9, 1.3 + 0.22 * len(study.cases)) if pictures is PICTURES else 2.9 for study, pictures, _ in drawn]
    figure, rows = plt.subplots(len(drawn), 3, figsize=(12, sum(heights)), squeeze=False, height_ratios=heights,
                                layout="constrained")
    for (study, pictures, first), row in zip(drawn, rows):
        for draw, axes in zip(pictures.values(), row):
            draw(axes, study)
        for axes in row[len(pictures):]:
            axes.set_axis_off()
        growing = f' on {first["ranks"]}' if study.weak else ""
        kind = "" if pictures is PICTURES else ", solves"
        row[0].set_title(f'{study.matrix}, {study.scaling}{kind}: {first["report"]["matrix"]["nnz"]:,} nonzeros{growing}, '
                         f'{study.type}, {first["report"]["ranks"][0]["device"]}{study.threads}', fontsize=9, loc="left", pad=14)
    said = [plots.unfinished(report).strip(" ()").capitalize() or None,
            "hollow marks and *: see the notes in the report" if any(doubtful(c) for s, _, _ in drawn for c in [*s.cases, *s.solved]) else None]
    figure.supxlabel("; ".join(filter(None, said)), x=0.01, ha="left", fontsize=8)
    plots.save_as_is(figure, arguments.output)


if __name__ == "__main__":
    main()
