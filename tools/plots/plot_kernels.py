#!/usr/bin/env python3
"""Draws the speed-ups of a report of `shardmat bench kernels --json`.

    plot_kernels.py kernels.json --output kernels.svg

A bar is the time of the yardstick (the best cuSPARSE kernel; on the host, the best kernel on CSR) over that of our fastest
kernel, whose name stands above it; the dot is the kernel that the automatic choice takes. A hatched bar is of unsteady
times: the median of one of the two is above twice its shortest. It is cut where it is far higher than all others. Needs
matplotlib (python3-matplotlib).
"""

import plots

COLOURS = {"f64": "#2f6f9f", "f32": "#e3a34a"}


def ratio(result):
    return (result or {}).get("ratio") or 0


def doubtful(case):
    return any(plots.unsteady(times) for times in (case["best_own"], case["yardstick"]))


def highest_steady(cases):
    """The highest bar that can be believed, or without one the highest; bars of unsteady times may be many times as high."""
    heights = [max(ratio(case["best_own"]), ratio(case["auto"])) for case in cases if ratio(case["best_own"])]
    steady = [max(ratio(case["best_own"]), ratio(case["auto"])) for case in cases
              if ratio(case["best_own"]) and not doubtful(case)]
    return max(1, *(steady or heights))


def draw(axes, names, cases, type_name, shift, width, top):
    """The bars of a type, moved by `shift`. Bars that are higher than `top` are cut, and say how high they are."""
    for i, name in enumerate(names):
        case = cases.get(name)
        if not case or not ratio(case["best_own"]):
            continue
        best, chosen = ratio(case["best_own"]), ratio(case["auto"])
        axes.bar(i + shift, min(best, top), 0.92 * width, color=COLOURS[type_name],
                 hatch="////" if doubtful(case) else None, edgecolor="white", linewidth=0)
        if 0 < chosen <= top:
            axes.plot(i + shift, chosen, "o", color="black", markeredgecolor="white", markersize=5)
        axes.annotate(case["best_own"]["kernel"] + (f" ({best:.3g}, cut)" if best > top else ""),
                      (i + shift, min(top, max(best, chosen))), (0, 6), textcoords="offset points", rotation=90, ha="center",
                      va="bottom", fontsize=7)


def legend(plt, report, types):
    handles = [plt.Rectangle((0, 0), 1, 1, color=COLOURS[type_name], label=type_name) for type_name in types]
    if any(ratio(case["auto"]) for case in report["cases"]):
        handles.append(plt.Line2D([], [], marker="o", color="black", linestyle="none", markersize=4,
                                  label="automatic choice"))
    if any(ratio(case["best_own"]) and doubtful(case) for case in report["cases"]):
        handles.append(plt.Rectangle((0, 0), 1, 1, facecolor="#888888", edgecolor="white", hatch="////", linewidth=0,
                                     label="unsteady times"))
    return handles


def main():
    arguments = plots.arguments(__doc__, "JSON file of shardmat bench kernels")
    report = plots.read(arguments.report, "bench kernels")

    plt = plots.pyplot(arguments.output, 9)
    names = list(dict.fromkeys(case["matrix"]["name"] for case in report["cases"]))
    types = [t for t in COLOURS if any(case["type"] == t for case in report["cases"])]
    if not any(ratio(case["best_own"]) for case in report["cases"]):
        plots.fail(f"{arguments.report}: nothing was measured that could be compared")
    highest = highest_steady(report["cases"])
    figure, axes = plt.subplots(figsize=(max(5, 1.6 + 1.1 * len(names)), 4.6))
    for position, type_name in enumerate(types):
        cases = {case["matrix"]["name"]: case for case in report["cases"] if case["type"] == type_name}
        draw(axes, names, cases, type_name, (position - (len(types) - 1) / 2) * 0.8 / len(types), 0.8 / len(types),
             1.1 * highest)
    cut = any(ratio(case["best_own"]) > 1.1 * highest for case in report["cases"])
    axes.set_ylim(0, (1.8 if cut else 1.4) * highest)  # names stand above the bars
    axes.axhline(1, color="black", linestyle="dashed", linewidth=1, zorder=0)
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.set_ylabel(f'speed-up over the {report["yardstick"]}')
    axes.set_title(plots.heading(report), fontsize=9, pad=22)
    axes.legend(handles=legend(plt, report, types), frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1),
                borderaxespad=0.2, ncols=4)
    axes.spines[["top", "right"]].set_visible(False)
    plots.save(figure, arguments.output)


if __name__ == "__main__":
    main()
