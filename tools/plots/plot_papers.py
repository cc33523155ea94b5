#!/usr/bin/env python3
"""Draws a report of `shardmat bench papers --json`: the figures of the papers, from what was measured here.

    plot_papers.py papers.json --output papers.svg

Each panel has the caption of the paper's figure, and beneath it what the paper's text prints of it. Needs matplotlib
(python3-matplotlib).
"""

import math

import plots

COLORS = ("#2f6f9f", "#e3a34a", "#4f9a5b", "#a33a3a", "#000000", "#7a6fa8", "#c77dab", "#8a8a8a")


def of_type(rows, wanted):
    """The rows of the paper's type of values; where there are none, those of the first type measured."""
    types = [row["type"] for row in rows]
    return [row for row in rows if row["type"] == (wanted if wanted in types else types[0])] if rows else []


def named(axes, places, names):
    axes.set_xticks(places, [name if len(name) < 26 else name[:24] + "…" for name in names], rotation=40, ha="right", fontsize=6)


def bars(axes, groups, series, unit, logarithmic=False):
    """A group of bars for each name in `groups`; series: (label, values), None for a bar that is missing."""
    width = 0.8 / max(1, len(series))
    for i, (label, values) in enumerate(series):
        found = [(g + (i - (len(series) - 1) / 2) * width, v) for g, v in enumerate(values) if v is not None]
        if found:
            axes.bar([x for x, _ in found], [v for _, v in found], width, color=COLORS[i % len(COLORS)], label=label)
    named(axes, range(len(groups)), groups)
    if logarithmic:
        axes.set_yscale("log")
        plots.label_logarithms(axes.yaxis)
    axes.set_ylabel(unit)
    axes.legend(frameon=False, fontsize=6, ncols=3, loc="best")


def batched(figure):
    def draw(axes, tables):
        rows = [row for row in tables["paper_1"]["rows"] if row["figure"] == figure]
        for i, (key, label) in enumerate((("tensorflow", "TensorFlow"), ("cusparse", "cuSPARSE"), ("cublas", "cuBLAS"),
                                          ("swa_st", "Batched SpMM (ST)"), ("swa_csr", "Batched SpMM (CSR)"), ("auto", "auto"))):
            found = [(row["columns"], row[key]) for row in rows if row[key] is not None]
            if found:
                axes.plot(*zip(*found), marker="o", markersize=3, color=COLORS[i], label=label)
        axes.set_xscale("log", base=2)
        columns = sorted({row["columns"] for row in rows})
        axes.set_xticks(columns, columns)
        axes.set_xlabel("n_B")
        axes.set_ylabel("GFLOPS")
        axes.legend(frameon=False, fontsize=6)
    return draw


def busy(axes, tables):
    rows = tables["paper_1_sm"]["rows"]
    bars(axes, [row["kernel"] for row in rows],
         [(label, [None if row[key] is None else 100 * row[key] for row in rows])
          for key, label in (("ncu", "ncu"), ("model", "model"), ("model_p100", "model, 56 SMs"), ("paper", "paper"))], "% of time")


def formats(axes, tables):
    rows = of_type(tables["paper_2"]["rows"], "f32")
    keys = [key for key in rows[0] if key in "csr csc coo ell ell_r hyb jds jds_t dia bcsr pkt".split()]
    values = [[row[key] if row[key] else math.nan for key in keys] for row in rows]
    picture = axes.imshow([[math.log2(v) for v in line] for line in values], cmap="RdYlGn", vmin=-3, vmax=3, aspect="auto")
    for y, (row, line) in enumerate(zip(rows, values)):
        for x, v in enumerate(line):
            mark = "*" * (keys[x] == row["advised"]) + "°" * (keys[x] == row["ours"])
            axes.text(x, y, "–" if math.isnan(v) else f"{v:.2g}{mark}", ha="center", va="center", fontsize=6)
    axes.set_xticks(range(len(keys)), keys, fontsize=6)
    axes.set_yticks(range(len(rows)), [row["matrix"][:24] for row in rows], fontsize=6)
    axes.figure.colorbar(picture, ax=axes, shrink=0.8, label="log2 of the speed-up")


def threads(axes, tables):
    rows = [row for row in of_type(tables["paper_3_threads"]["rows"], "f64") if row["order"] == "as they are"]
    counts = (1, 2, 4, 8, 16, 32)
    for i, row in enumerate(rows):
        times = [row[f"us_{n}"] for n in counts]
        best = min((t for t in times if t), default=None)
        if best is None:
            continue
        shown = [best / t if t else math.nan for t in times]
        axes.plot(counts, shown, color=f"C{i % 10}", linewidth=1, label=row["matrix"][:24])
        if row["formula"] in counts:
            axes.plot([row["formula"]], [shown[counts.index(row["formula"])]], marker="o", color=f"C{i % 10}", markersize=6)
    axes.set_xscale("log", base=2)
    axes.set_xticks(counts, counts)
    axes.set_xlabel("NT; dots: the formula's")
    axes.set_ylabel("speed, of the best NT's")
    axes.set_ylim(0, 1.05)
    axes.legend(frameon=False, fontsize=6, ncols=2)


def ranks(axes, tables):
    rows = of_type(tables["paper_3_ranks"]["rows"], "f64")
    names = list(dict.fromkeys(row["matrix"] for row in rows))
    counts = sorted({row["ranks"] for row in rows})

    def value(name, count, key):
        found = [row[key] for row in rows if row["matrix"] == name and row["ranks"] == count]
        return found[0] if found else None
    series = [(f"best, {n} rank" + "s" * (n > 1), [value(name, n, "as_is_us") for name in names]) for n in counts]
    series += [(f"sorted, {n}", [value(name, n, "sorted_us") for name in names]) for n in counts[1:]]
    others = {row["other_csr"] for row in rows if row["other_csr"]}
    series += [(other, [value(name, 1, "other_csr_us") for name in names]) for other in others]
    bars(axes, names, series, "µs", True)


def localities(axes, tables):
    rows = sorted(of_type(tables["paper_4"]["rows"], "f32"), key=lambda row: row["rows"])
    bars(axes, [row["matrix"] for row in rows],
         [(label, [row[key] for row in rows]) for key, label in
          (("locality", "CRS"), ("locality_padded", "Fold, with padding"), ("locality_fold", "Fold, padding removed"))],
         "valid data a line")
    axes.set_ylim(0, 1.2 * axes.get_ylim()[1])
    other = axes.twinx()
    other.plot(range(len(rows)), [100 * row["l1_fold"] for row in rows], color="black", linewidth=0.8, marker=".", label="model")
    counted = [(i, 100 * row["ncu_fold"]) for i, row in enumerate(rows) if row["ncu_fold"] is not None]
    if counted:
        other.plot(*zip(*counted), color="black", linestyle=":", marker="x", label="ncu")
    other.set_ylim(0, 100)
    other.set_ylabel("L1 hit rate of Fold, %")


def rows_and_hits(axes, tables):
    rows = of_type(tables["paper_4"]["rows"], "f32")
    for key, marker, label in (("l1_crs", "o", "model"), ("ncu_crs", "x", "ncu")):
        found = [(row["rows"], 100 * row[key]) for row in rows if row[key] is not None]
        if found:
            axes.scatter(*zip(*found), color="#2f6f9f", marker=marker, s=14, label=label)
    axes.set_xscale("log")
    axes.set_xlabel("rows")
    axes.set_ylabel("L1 hit rate of CRS, %")
    axes.set_ylim(0, 100)
    axes.legend(frameon=False, fontsize=6)


def group_of(row):
    line = 32 if row["type"] == "f32" else 16
    return 0 if row["locality_fold"] >= 0.75 * line else 1 if row["locality_fold"] < 2 else 2


def scatter(axes, tables):
    rows = of_type(tables["paper_4"]["rows"], "f32")
    for group, (label, color) in enumerate((("stream", "#a33a3a"), ("scattered", "#2f6f9f"), ("related", "#4f9a5b"))):
        for key, marker, how in (("l1_fold", "o", "model"), ("ncu_fold", "x", "ncu")):
            found = [(row["locality_fold"], 100 * row[key]) for row in rows if group_of(row) == group and row[key] is not None]
            if found:
                axes.scatter(*zip(*found), color=color, marker=marker, s=14, label=f"{label}, {how}")
    axes.set_xlabel("valid data a line, Fold without padding")
    axes.set_ylabel("L1 hit rate, %")
    axes.set_ylim(0, 100)
    axes.legend(frameon=False, fontsize=6)


def speeds(axes, tables):
    rows = of_type(tables["paper_4"]["rows"], "f32")
    for key, time, label, color in (("locality", "crs_us", "CRS", "#2f6f9f"), ("locality_fold", "fold_us", "Fold", "#e3a34a")):
        found = [(row[key], 2e-3 * row["nnz"] / row[time]) for row in rows if row[time]]
        if found:
            axes.scatter(*zip(*found), color=color, s=14, label=label)
    axes.set_xlabel("valid data a line; Fold without padding")
    axes.set_ylabel("GFLOPS")
    axes.legend(frameon=False, fontsize=6)


FORMATS = "csr rbp_csr bcsr bcrs ell rbp_ell ell_r rbp_ell_r".split()


def packed(key, unit):
    def draw(axes, tables):
        rows = of_type(tables["paper_5_formats"]["rows"], "f64")
        names = list(dict.fromkeys(row["matrix"] for row in rows))
        by_place = {(row["matrix"], row["format"]): row[key] for row in rows}
        factor = 1e-6 if key == "bytes" else 1
        bars(axes, names, [(form, [None if by_place.get((name, form)) is None else factor * by_place[name, form] for name in names])
                           for form in FORMATS], unit, True)
    return draw


def gmres(axes, tables):
    table = tables["paper_5_gmres"]["rows"]
    backends = [row["backend"] for row in table]
    rows = [row for row in table if row["backend"] == ("cuda" if "cuda" in backends else backends[0]) and row["whole_ms"] is not None]
    left = [0] * len(rows)
    for i, (key, label) in enumerate((("convert_ms", "format"), ("transfer_ms", "transfer"), ("products_ms", "SpMV"), ("rest_ms", "other"))):
        axes.bar(range(len(rows)), [row[key] for row in rows], bottom=left, color=COLORS[i], label=label)
        left = [a + row[key] for a, row in zip(left, rows)]
    named(axes, range(len(rows)), [f"{row['matrix'][:14]} {row['format']}" for row in rows])
    axes.set_ylabel("ms")
    axes.legend(frameon=False, fontsize=6)


# Table that a panel needs, the caption of the paper's figure, what its text prints of it, what draws it.
PANELS = [
    ("paper_1", "Paper 1, Fig. 6 (a): batch 50, dim 50, nnz/row 2", "paper (P100): up to 9.27× over non-batched, 1.26× over cuBLAS at n_B = 64", batched("6a")),
    ("paper_1", "Paper 1, Fig. 6 (b): batch 100, dim 50, nnz/row 3", "paper (P100): up to 6.09× over non-batched, 1.43× over cuBLAS at n_B = 512", batched("6b")),
    *(("paper_1", f"Paper 1, Fig. 7 ({name[1]})", "the paper's text prints no figure", batched(name)) for name in ("7a", "7b", "7c", "7d", "7e", "7f")),
    ("paper_1", "Paper 1, Fig. 8: batch 100, dim 32 to 256, nnz/row 1 to 5", "paper (P100): up to 3.29× over non-batched at n_B = 1024", batched("8")),
    ("paper_1_sm", "Paper 1, sm_efficiency at n_B = 512 of Fig. 6 (b)", "paper (P100, nvprof): 35.51, 89.07, 87.87 %", busy),
    ("paper_2", "Paper 2: speed-up over CSR with one thread a row", "* advised by the text, ° by our guide; the text prints no figure", formats),
    ("paper_3_threads", "Paper 3: speed by threads a row (NT), one device", "paper (GTX 590): the formula often misses the best NT; no figure is printed", threads),
    ("paper_3_ranks", "Paper 3: best single, best multi, sorted, other CSR", "paper (2 × GTX 590): more than half of the matrices lost speed on two GPUs", ranks),
    ("paper_4", "Paper 4, Fig. 2: L1 hit rate over the number of rows (CRS)", "paper (C2050): r = −0.67", rows_and_hits),
    ("paper_4", "Paper 4, Fig. 4: L1 hit rate and valid data a line", "paper (C2050): F1 24 % of L1 hits, 9.41 GFLOPS; ldoor 39 %, 13.27 GFLOPS", localities),
    ("paper_4", "Paper 4, Figs. 5 to 7: L1 hit rate over valid data a line (Fold)", "paper: no relation in the scattered group, a positive one in the rest", scatter),
    ("paper_4", "Paper 4: speed over valid data a line", "paper (C2050): F1 9.41 GFLOPS, ldoor 13.27 GFLOPS", speeds),
    ("paper_5_formats", "Paper 5, Fig. 6: memory usage of each storage format", "paper: RBP-CSR −14.5 %, RBP-ELL −16.2 %, RBP-ELL-R −16.2 % on average; best −26.0, −26.3, −26.2 %", packed("bytes", "MB")),
    ("paper_5_formats", "Paper 5, Fig. 7: time of a product", "paper (V100): 1.50×, 1.65×, 1.51× on average; best 2.07×, 3.28×, 3.32×", packed("us", "µs")),
    ("paper_5_gmres", "Paper 5, Figs. 8 and 9: time of GMRES", "paper (V100): packing saves 6.6, 4.1, 3.5 % on average", gmres),
]


def panels(report):
    """The panels whose tables have rows to draw."""
    tables = report["tables"]
    figures = {row["figure"] for row in tables.get("paper_1", {"rows": []})["rows"]}
    for table, caption, printed, draw in PANELS:
        if not tables.get(table, {}).get("rows"):
            continue
        if table == "paper_1" and not any(f"({name[1]})" in caption if len(name) > 1 else "Fig. 8" in caption
                                          for name in figures if f"Fig. {name[0]}" in caption):
            continue
        yield caption, printed, draw


def main():
    arguments = plots.arguments(__doc__, "JSON file of shardmat bench papers")
    report = plots.read(arguments.report, "bench papers")
    found = list(panels(report))
    if not found:
        plots.fail(f"{arguments.report}: nothing was measured")
    plt = plots.pyplot(arguments.output, 8)
    columns = min(2, len(found))
    lines = math.ceil(len(found) / columns)
    height = 0.5 + 4.2 * lines
    figure, grid = plt.subplots(lines, columns, squeeze=False, figsize=(6.4 * columns, height))
    for axes in grid.flat[len(found):]:
        axes.set_visible(False)
    for axes, (caption, printed, draw) in zip(grid.flat, found):
        draw(axes, report["tables"])
        axes.set_title(f"{caption}\n", fontsize=8)
        axes.text(0.5, 1.02, printed, transform=axes.transAxes, ha="center", fontsize=6, color="#5d6873")
    figure.suptitle(plots.heading(report), fontsize=8, y=1 - 0.08 / height, va="top")
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.3 / height))
    plots.save_as_is(figure, arguments.output)


if __name__ == "__main__":
    main()
