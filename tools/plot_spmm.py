#!/usr/bin/env python3
"""Draws the speed-ups of a report of `shardmat bench spmm --json`.

    plot_spmm.py spmm.json --output spmm.svg

A line is a matrix in a type: the time of cuSPARSE's fastest algorithm over ours, by the number of right-hand sides. Needs
matplotlib (python3-matplotlib).
"""

import argparse

import plots

STYLES = {"f64": "-", "f32": "--"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", help="JSON file of shardmat bench spmm")
    parser.add_argument("--output", required=True, help="picture to write (.svg, .png or .pdf)")
    arguments = parser.parse_args()
    report = plots.read(arguments.report)

    plt = plots.pyplot(arguments.output, 9)
    figure, axes = plt.subplots(figsize=(6.4, 4))
    names = list(dict.fromkeys(case["matrix"]["name"] for case in report["cases"]))
    kinds = list(dict.fromkeys((case["matrix"]["name"], case["type"], case["order"]) for case in report["cases"]))
    for name, type_name, order in kinds:
        points = [(case["rhs"], case["speed_up"]) for case in report["cases"]
                  if (case["matrix"]["name"], case["type"], case["order"]) == (name, type_name, order) and case["speed_up"]]
        if points:
            label = f"{name} {type_name}" + ("" if order == "row" else ", column-major")
            axes.plot(*zip(*points), STYLES[type_name], marker="o" if order == "row" else "s", markersize=3,
                      color=f"C{names.index(name)}", label=label)
    axes.axhline(1, color="black", linestyle="dotted", linewidth=1)
    axes.set_xscale("log", base=2)
    axes.set_ylim(bottom=0)
    counts = sorted({case["rhs"] for case in report["cases"]})
    axes.set_xticks(counts, counts)
    axes.set_xlabel("right-hand sides")
    axes.set_ylabel("speed-up over the fastest cuSPARSE algorithm")
    axes.set_title(f'{report["machine"]["processor"]}, {report["machine"]["software"]}', fontsize=9)
    if axes.lines[:-1]:
        axes.legend(frameon=False, fontsize=8, ncols=2)
    axes.spines[["top", "right"]].set_visible(False)
    plots.save(figure, arguments.output)


if __name__ == "__main__":
    main()
