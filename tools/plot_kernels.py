#!/usr/bin/env python3
"""Draws the speed-ups of a report of `shardmat bench kernels --json`.

    plot_kernels.py kernels.json --output kernels.svg

A bar is the time of the yardstick (the best cuSPARSE kernel; on the host, the best kernel on CSR) over that of our fastest
kernel, whose name stands on it; the dot is the kernel that the automatic choice takes. Needs matplotlib
(python3-matplotlib).
"""

import argparse

import plots

COLOURS = {"f64": "#2f6f9f", "f32": "#e3a34a"}


def ratio(result):
    return (result or {}).get("ratio") or 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", help="JSON file of shardmat bench kernels")
    parser.add_argument("--output", required=True, help="picture to write (.svg, .png or .pdf)")
    arguments = parser.parse_args()
    report = plots.read(arguments.report)

    plt = plots.pyplot(arguments.output, 9)
    names = list(dict.fromkeys(case["matrix"]["name"] for case in report["cases"]))
    types = [t for t in COLOURS if any(case["type"] == t for case in report["cases"])]
    width = 0.8 / max(1, len(types))
    figure, axes = plt.subplots(figsize=(max(5, 1.6 + 1.1 * len(names)), 4))
    for position, type_name in enumerate(types):
        cases = {case["matrix"]["name"]: case for case in report["cases"] if case["type"] == type_name}
        at = [i + (position - (len(types) - 1) / 2) * width for i in range(len(names))]
        best = [ratio(cases.get(name, {}).get("best_own")) for name in names]
        axes.bar(at, best, 0.92 * width, color=COLOURS[type_name], label=type_name)
        for x, height, name in zip(at, best, names):
            if height:
                axes.text(x, 0.02, cases[name]["best_own"]["kernel"], rotation=90, ha="center", va="bottom", fontsize=7,
                          color="white")
        chosen = [(x, ratio(cases.get(name, {}).get("auto"))) for x, name in zip(at, names)]
        chosen = [point for point in chosen if point[1]]
        if chosen:
            axes.plot(*zip(*chosen), "o", color="black", markersize=4, label="automatic choice" if position == 0 else None)
    axes.set_ylim(0, 1.25 * max([1, *(ratio(case["best_own"]) for case in report["cases"])]))  # the legend stands above
    axes.axhline(1, color="black", linestyle="dashed", linewidth=1)
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axes.set_ylabel(f'speed-up over the {report["yardstick"]}')
    axes.set_title(f'{report["machine"]["processor"]}, {report["machine"]["software"]}', fontsize=9)
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    plots.save(figure, arguments.output)


if __name__ == "__main__":
    main()
