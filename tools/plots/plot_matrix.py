#!/usr/bin/env python3
"""Draws row lengths and runs of consecutive columns of a matrix from `shardmat info --json`.

    shardmat info bar.h5 --json > bar.json
    plot_matrix.py bar.json --output bar.svg

Bars are bins in powers of two, their heights shares of the rows and of the runs. Needs matplotlib (python3-matplotlib).
"""

import plots


def draw(axes, bins, counts, color, title, xlabel):
    total = sum(b[counts] for b in bins) or 1
    labels = [f'{b["from"]:,}' if b["from"] == b["to"] else f'{b["from"]:,}\u2013{b["to"]:,}' for b in bins]
    axes.bar(range(len(bins)), [100 * b[counts] / total for b in bins], 0.8, color=color)
    axes.set_xticks(range(len(bins)), labels, rotation=45, ha="right", fontsize=8)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(f"% of the {counts}")
    axes.set_title(title, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)


def main():
    arguments = plots.arguments(__doc__, "JSON of shardmat info")
    report = plots.read(arguments.report, "info")
    try:
        lengths, runs = report["row_lengths"]["histogram"], report["runs"]
    except KeyError as error:
        plots.fail(f"{arguments.report}: no {error} in it; make it with shardmat info --json, without --quick")

    plt = plots.pyplot(arguments.output, 10)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
    mean = report["row_lengths"]["mean"]
    draw(left, lengths, "rows", "#2f6f9f", f"Nonzeros a row, mean {mean:.1f}", "nonzeros")
    title = f'Runs of consecutive columns, mean length {runs["mean"]:.2f}'
    draw(right, runs["histogram"], "runs", "#e3a34a", title, "nonzeros")
    figure.suptitle(f'{report["name"]}: {report["rows"]:,} rows, {report["nnz"]:,} nonzeros', fontsize=10)
    plots.save(figure, arguments.output)


if __name__ == "__main__":
    main()
