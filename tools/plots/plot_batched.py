#!/usr/bin/env python3
"""Draws the speeds of a report of `shardmat bench batched --json`.

    plot_batched.py batched.json --output batched.svg

A picture is a batch in a type, as in the paper of Nagasaka et al., a line a method: GFLOP/s by the number of columns. Hollow
marks are of unsteady times. Needs matplotlib (python3-matplotlib).
"""

import argparse
import math

import plots

COLUMNS = 4
OWN = {"auto": ("C3", "-"), "swa": ("C1", "--"), "coo_swa": ("C8", "--")}
OTHERS = {
    "coo_tensorflow": ("TensorFlow's kernel, one by one, graph", "C7"),
    "cusparse_plain": ("cuSPARSE, one by one", "C5"),
    "cusparse_graph": ("cuSPARSE, one by one, graph", "C4"),
    "cusparse_block_diagonal": ("cuSPARSE, block-diagonal", "C0"),
    "cusparse_strided": ("cuSPARSE, strided batch", "C9"),
    "cublas_gemm_batched": ("cuBLAS gemmBatched, dense", "C2"),
    "cublas_gemm_strided": ("cuBLAS gemmStridedBatched, dense", "black"),
}


def style(result):
    method = result["method"]
    if method in OTHERS:
        label, color = OTHERS[method]
        return {"label": label, "color": color, "linestyle": ":" if method == "cusparse_plain" else "-", "linewidth": 1}
    color, line = OWN.get(method, ("C6", "-."))
    labels = {"auto": "ours", "swa": "swa (Nagasaka et al., CSR)", "coo_swa": "coo_swa (Nagasaka et al., SparseTensor)"}
    width = 2 if method == "auto" else 1.2
    return {"label": labels.get(method, method), "color": color, "linestyle": line, "linewidth": width}


def title(case):
    batch, figure = case["batch"], case["figure"]
    name = figure if figure == case["source"] or not figure[0].isdigit() else f"Fig. {figure}"
    rows, nonzeros = batch["rows"] / max(1, batch["count"]), batch["nnz"] / max(1, batch["rows"])
    return f'{name}, {case["type"]}\n{batch["count"]:,} × {rows:.3g} rows × {nonzeros:.2g} nonzeros'


def times_of(result, way):
    """What `way` counts: on the device, or of what cannot be replayed there, of calls."""
    times = result["times"]
    if way == "cold":
        return times["cold"]
    suffix = "_with_descriptors" if way == "with_descriptors" else ""
    return times["graph" + suffix] or times["plain" + suffix]


def draw(axes, cases, way):
    """Adds a line a method; returns them by label."""
    lines = {}
    for method in dict.fromkeys(result["method"] for case in cases for result in case["results"]):
        found = [(case["rhs"], result) for case in cases for result in case["results"]
                 if result["method"] == method and "refused" not in result and result["wrong_entries"] == 0]
        points = [(rhs, result["gflops"][way]) for rhs, result in found if result["gflops"].get(way)]
        if points:
            look = style(found[0][1])
            lines[look["label"]] = axes.plot(*zip(*points), marker="o", markersize=2.5, **look)[0]
            hollow = [(rhs, result["gflops"][way]) for rhs, result in found
                      if result["gflops"].get(way) and plots.unsteady(times_of(result, way))]
            if hollow:
                lines["unsteady times"] = axes.plot(*zip(*hollow), "o", markersize=5, color="black", markerfacecolor="white",
                                                    zorder=3)[0]
    counts = sorted({case["rhs"] for case in cases})
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(counts, counts, fontsize="small")
    plots.label_logarithms(axes.yaxis)
    axes.minorticks_off()
    axes.grid(axis="y", linewidth=0.4, alpha=0.5)
    axes.set_title(title(cases[0]), fontsize="medium", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", help="JSON file of shardmat bench batched")
    parser.add_argument("--output", required=True, help="picture to write (.svg, .png or .pdf)")
    parser.add_argument("--way", default="warm", choices=["warm", "with_descriptors", "cold"],
                        help="which times: caches warm, with copies of descriptors, caches flushed (default %(default)s)")
    arguments = parser.parse_args()
    report = plots.read(arguments.report, "bench batched")
    batches = {}
    for case in report["cases"]:
        batches.setdefault((case["type"], case["source"], case["figure"]), []).append(case)
    if not batches:
        plots.fail(f"{arguments.report}: nothing was measured")

    plt = plots.pyplot(arguments.output, 8)
    columns = min(COLUMNS, len(batches))
    rows = math.ceil(len(batches) / columns)
    figure, panels = plt.subplots(rows, columns, figsize=(max(6.4, 3 * columns), 2.6 * rows + 1.1), squeeze=False)
    lines = {}
    for axes, cases in zip(panels.flat, batches.values()):
        lines |= draw(axes, cases, arguments.way)
    for axes in list(panels.flat)[len(batches):]:
        axes.set_axis_off()
    for row in panels:
        row[0].set_ylabel("GFLOP/s")
    for place, axes in enumerate(list(panels.flat)[:len(batches)]):
        if place + columns >= len(batches):
            axes.set_xlabel("columns of the dense matrices")
    figure.suptitle(plots.heading(report), fontsize=8)
    legend_inches = 0.15 + 0.2 * math.ceil(len(lines) / 3)
    figure.set_figheight(2.6 * rows + 0.35 + legend_inches)
    figure.tight_layout(rect=(0, legend_inches / figure.get_figheight(), 1, 1))
    figure.legend(lines.values(), lines.keys(), frameon=False, ncols=3, loc="lower center")
    plots.save_as_is(figure, arguments.output)


if __name__ == "__main__":
    main()
