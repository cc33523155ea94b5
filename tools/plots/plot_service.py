#!/usr/bin/env python3
"""Draws a report of `shardmat bench service --json`.

    plot_service.py service.json --output service.svg

A row a matrix of the scenarios "merged" and "solves": products or solves a second and the latency of a request over the
number of clients, with requests that are merged and without. The band reaches from the median to 99 % of the latencies. Needs matplotlib
(python3-matplotlib).
"""

import plots

SIDES = {True: ("merged", "#2f6f9f"), False: ("not merged", "#e3a34a")}


def over_clients(axes, points):
    clients = [point["clients"] for point in points]
    axes.set_xscale("log", base=2)
    axes.set_xticks(clients, [str(number) for number in clients])
    axes.minorticks_off()
    axes.set_xlabel("clients, each with one request under way")
    axes.spines[["top", "right"]].set_visible(False)


def kind_of(line):
    return line.get("requests", "products")  # reports of before had products alone


def draw_rate(axes, lines):
    for line in lines:
        label, color = SIDES[line["merging"]]
        axes.plot([p["clients"] for p in line["points"]], [p["products_per_s"] for p in line["points"]], "o-", color=color,
                  markersize=4, label=label)
    axes.set_ylim(bottom=0)
    axes.set_ylabel(f"{kind_of(lines[0])} a second")
    axes.legend(frameon=False, fontsize="small")
    over_clients(axes, lines[0]["points"])


def draw_latency(axes, lines):
    for line in lines:
        label, color = SIDES[line["merging"]]
        clients = [p["clients"] for p in line["points"]]
        middle, high = ([1e3 * p[key] for p in line["points"]] for key in ("p50_s", "p99_s"))
        axes.plot(clients, middle, "o-", color=color, markersize=4, label=f"{label}: median, band to 99 %")
        axes.fill_between(clients, middle, high, color=color, alpha=0.2, linewidth=0)
    axes.set_yscale("log")
    plots.label_logarithms(axes.yaxis)
    axes.set_ylabel("ms a request")
    axes.legend(frameon=False, fontsize="small")
    over_clients(axes, lines[0]["points"])


def main():
    arguments = plots.arguments(__doc__, "JSON file of shardmat bench service")
    report = plots.read(arguments.report, "bench service")
    curves = [curve for scenario in report["scenarios"] for curve in scenario["curves"]]
    cases = list(dict.fromkeys((curve["matrix"], curve["vectors"], kind_of(curve)) for curve in curves))
    if not cases:
        plots.fail(f"{arguments.report}: neither of the scenarios merged and solves was run")

    plt = plots.pyplot(arguments.output, 9)
    figure, rows = plt.subplots(len(cases), 2, figsize=(9, 0.4 + 2.7 * len(cases)), squeeze=False)
    for case, row in zip(cases, rows):
        lines = [curve for curve in curves if (curve["matrix"], curve["vectors"], kind_of(curve)) == case]
        draw_rate(row[0], lines)
        draw_latency(row[1], lines)
        where = {"resident": "vectors stay in the service", "sent": "vectors are sent"}[case[1]]
        row[0].set_title(f"{case[0]}, {where}" if case[2] == "products" else f"{case[0]}, solves", loc="left", fontsize="medium")
    where = f'{report["machine"]["processor"]}, {report["cores"]} cores' + ", virtual machine" * report["virtual_machine"]
    foreign = max(scenario["foreign_cores"] for scenario in report["scenarios"] if scenario["curves"])
    if foreign >= 0.1:
        where += f"; other programs used {foreign:.1f} cores"
    figure.suptitle(f"shardmat serve and its clients on {where}", fontsize="medium", x=0.01, ha="left",
                    y=1 - 0.08 / figure.get_figheight())
    if plots.unfinished(report):
        figure.text(0.01, 0.005, plots.unfinished(report).strip(" ()"), fontsize="small")
    plots.save(figure, arguments.output)


if __name__ == "__main__":
    main()
