#!/usr/bin/env python3
"""Draws the speed-ups of a report of `shardmat bench spmm --json`.

    plot_spmm.py spmm.json --output spmm.svg

A line is a matrix in a type: the time of cuSPARSE's fastest algorithm over ours, by the number of right-hand sides. Without
cuSPARSE, as on the host, it is the time of as many products with one right-hand side over ours. A hollow mark is of unsteady
times. Needs matplotlib (python3-matplotlib).
"""

import plots

STYLES = {"f64": "-", "f32": "--", "f16": "-.", "bf16": ":"}


def ours(case):
    """What the automatic choice takes, else the fastest right result of our kernels."""
    own = [r for r in case["results"] if not r["kernel"].endswith("_cusparse") and r["wrong_entries"] == 0]
    return case["auto"] or min(own, key=lambda r: r["median_s"], default=None)


def over_single_products(case):
    return case["rhs"] * case["spmv_s"] / ours(case)["median_s"] if ours(case) else None


def main():
    arguments = plots.arguments(__doc__, "JSON file of shardmat bench spmm")
    report = plots.read(arguments.report, "bench spmm")
    cases = report["cases"]
    peers = any(case["speed_up"] for case in cases)
    speed_up = (lambda case: case["speed_up"]) if peers else over_single_products
    if not any(speed_up(case) for case in cases):
        plots.fail(f"{arguments.report}: nothing was measured")

    plt = plots.pyplot(arguments.output, 9)
    figure, axes = plt.subplots(figsize=(7.2, 4.2))
    names = list(dict.fromkeys(case["matrix"]["name"] for case in cases))
    kinds = list(dict.fromkeys((case["matrix"]["name"], case["type"], case["order"]) for case in cases))
    for name, type_name, order in kinds:
        found = [case for case in cases
                 if (case["matrix"]["name"], case["type"], case["order"]) == (name, type_name, order) and speed_up(case)]
        if not found:
            continue
        label = f"{name} {type_name}" + ("" if order == "row" else ", column-major")
        color, mark = f"C{names.index(name) % 10}", "o" if order == "row" else "s"
        axes.plot([case["rhs"] for case in found], [speed_up(case) for case in found], STYLES[type_name], marker=mark,
                  markersize=3, color=color, label=label)
        axes.plot([case["rhs"] for case in found if plots.unsteady(ours(case))],
                  [speed_up(case) for case in found if plots.unsteady(ours(case))], linestyle="none", marker=mark,
                  markersize=5, markerfacecolor="white", color=color)
    if any(plots.unsteady(ours(case)) for case in cases if speed_up(case)):
        axes.plot([], [], linestyle="none", marker="o", markersize=5, markerfacecolor="white", color="black",
                  label="unsteady times")
    axes.axhline(1, color="black", linestyle="dotted", linewidth=1)
    axes.set_xscale("log", base=2)
    axes.set_ylim(bottom=0)
    counts = sorted({case["rhs"] for case in cases})
    axes.set_xticks(counts, counts)
    axes.minorticks_off()
    axes.set_xlabel("right-hand sides")
    axes.set_ylabel("speed-up over " + ("the fastest cuSPARSE algorithm" if peers else
                                        "as many products\nwith one right-hand side each"))
    figure.suptitle(plots.heading(report), fontsize=9)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    axes.spines[["top", "right"]].set_visible(False)
    plots.save(figure, arguments.output)


if __name__ == "__main__":
    main()
