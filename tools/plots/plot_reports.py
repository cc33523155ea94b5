#!/usr/bin/env python3
"""Draws the time of one iteration from reports of `shardmat multiply --json`.

    plot_reports.py report-1.json report-2.json report-4.json --output time.svg

One bar a report: the local product, and what the exchange adds to it. The dashed line is perfect speed-up over the first
report, the dots are cuSPARSE's best CSR algorithm where --measure was given. Needs matplotlib (python3-matplotlib).
"""

import argparse

import plots


def best_cusparse(report):
    times = [m["seconds"] for m in report["kernel"]["measurements"] if m["kernel"] == "csr_cusparse"]
    return min(times) if times else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="+", help="JSON files of shardmat multiply")
    parser.add_argument("--output", required=True, help="picture to write (.svg, .png or .pdf)")
    arguments = parser.parse_args()
    reports = [plots.read(path, "multiply") for path in arguments.reports]

    plt = plots.pyplot(arguments.output, 10)
    labels = [f'{len(r["ranks"])} × {r["matrix"]["type"]}' for r in reports]
    total = [1e6 * r["iteration"]["median_s"] for r in reports]
    # The product was timed alone, and may have been disturbed.
    local = [min(t, 1e6 * r["local_product"]["median_s"]) for t, r in zip(total, reports)]
    added = [t - l for t, l in zip(total, local)]
    figure, axes = plt.subplots(figsize=(7, 3.4))
    positions = range(len(reports))
    axes.bar(positions, local, 0.55, label="local product", color="#2f6f9f")
    axes.bar(positions, added, 0.55, bottom=local, label="exchange of x", color="#e3a34a")
    for position, report, time in zip(positions, reports, total):
        axes.annotate(f"{time:.3g} µs", (position, time), (0, 3), textcoords="offset points", ha="center", va="bottom",
                      fontsize=8)
        first = next(r for r in reports if r["matrix"]["type"] == report["matrix"]["type"])
        ideal = 1e6 * first["iteration"]["median_s"] * len(first["ranks"]) / len(report["ranks"])
        axes.hlines(ideal, position - 0.36, position + 0.36, colors="black", linestyles="dashed", linewidth=1,
                    label="perfect speed-up" if position == 0 else None)
    vendor = [(p, 1e6 * best_cusparse(r)) for p, r in zip(positions, reports) if best_cusparse(r)]
    if vendor:
        axes.plot(*zip(*vendor), "D", color="#a33", markersize=5, label="cuSPARSE CSR, product alone")
    axes.set_xticks(list(positions), labels)
    axes.set_ylabel("µs an iteration")
    axes.set_ylim(0, 1.25 * max(total + [time for _, time in vendor]))
    matrix = reports[0]["matrix"]
    device = reports[0]["ranks"][0]["device"]
    axes.set_title(f'{matrix["name"]}: {matrix["rows"]:,} rows, {matrix["nnz"]:,} nonzeros, {device}', fontsize=10)
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    plots.save(figure, arguments.output)


if __name__ == "__main__":
    main()
