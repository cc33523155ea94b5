#!/usr/bin/env python3
"""Draws a report of `shardmat bench scaling --json`.

    plot_scaling.py scaling.json --output scaling.svg

A row a matrix. Left: time of an iteration over the number of ranks, one line an exchange, and dashed perfect speed-up. Right:
the share of perfect speed-up that was reached. Needs matplotlib (python3-matplotlib).
"""

import argparse

import plots

COLORS = ("#2f6f9f", "#e3a34a", "#4f9a5b", "#a33")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", help="JSON file of shardmat bench scaling")
    parser.add_argument("--output", required=True, help="picture to write (.svg, .png or .pdf)")
    arguments = parser.parse_args()
    report = plots.read(arguments.report)
    cases = [case for case in report["cases"] if "report" in case]
    if not cases:
        plots.fail(f"{arguments.report}: nothing was measured")

    plt = plots.pyplot(arguments.output, 9)
    from matplotlib import ticker
    matrices = list(dict.fromkeys(case["matrix"] for case in cases))
    figure, rows = plt.subplots(len(matrices), 2, figsize=(8, 2.7 * len(matrices)), squeeze=False)
    for matrix, (time, efficiency) in zip(matrices, rows):
        mine = [case for case in cases if case["matrix"] == matrix]
        alone = [case for case in mine if case["ranks"] == mine[0]["ranks"]]
        first = min(alone, key=lambda case: case["report"]["iteration"]["median_s"])
        begin = 1e6 * first["report"]["iteration"]["median_s"]
        counts = sorted({case["ranks"] for case in mine})
        perfect = [begin if first["weak"] else begin * first["ranks"] / p for p in counts]
        time.plot(counts, perfect, "--", color="black", linewidth=1, label="perfect")
        asked = [e for e in dict.fromkeys(case["exchange_asked"] for case in mine) if any(
            case["exchange_asked"] == e and case["ranks"] > first["ranks"] for case in mine)] or ["auto"]
        for color, exchange in zip(COLORS, asked):
            line = [first] + [case for case in mine if case["exchange_asked"] == exchange and case["ranks"] > first["ranks"]]
            ranks = [case["ranks"] for case in line]
            time.plot(ranks, [1e6 * case["report"]["iteration"]["median_s"] for case in line], "o-", color=color,
                      markersize=4, label=exchange)
            efficiency.plot(ranks, [100 * case["efficiency"] for case in line], "o-", color=color, markersize=4)
        time.set_xscale("log", base=2)
        time.set_yscale("log")
        time.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        time.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
        time.set_ylabel("µs an iteration")
        efficiency.set_xscale("log", base=2)
        efficiency.set_ylim(0, 105)
        efficiency.set_ylabel("% of perfect speed-up")
        of_matrix = first["report"]["matrix"]
        growing = f' on {first["ranks"]}' if first["weak"] else ""
        time.set_title(f'{matrix}: {of_matrix["nnz"]:,} nonzeros{growing}, {report["type"]}', fontsize=9, loc="left")
        time.legend(frameon=False, fontsize=8)
        for axes in (time, efficiency):
            axes.set_xticks(counts, [str(p) for p in counts])
            axes.minorticks_off()
            axes.spines[["top", "right"]].set_visible(False)
    for axes in rows[-1]:
        axes.set_xlabel(f'ranks, {cases[0]["report"]["ranks"][0]["device"]}')
    plots.save(figure, arguments.output)


if __name__ == "__main__":
    main()
