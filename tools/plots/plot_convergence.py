#!/usr/bin/env python3
"""Draws the convergence in a report of `shardmat solve --json`.

    plot_convergence.py solve.json --output solve.svg

The norm of the residual over the iterations, a line for each right-hand side: as the method updated it, and, if the report
has it, the true one, |b - A x|. The horizontal line is the tolerance. Needs matplotlib (python3-matplotlib).
"""

import plots

MOST_POINTS = 2000  # of a line: more are not seen, and make a large file
MOST_COLUMNS = 10


def points(history):
    """Iterations and positive norms of a history; of a long one the largest norm of each group, so that peaks stay."""
    step = max(1, -(-len(history) // MOST_POINTS))
    found = []
    for first in range(0, len(history), step):
        group = [(norm, i) for i, norm in enumerate(history[first : first + step], first) if not isinstance(norm, str) and norm > 0]
        if group:
            found.append(max(group))
    return [i for _, i in found], [norm for norm, _ in found]


def main():
    arguments = plots.arguments(__doc__, "JSON file of shardmat solve")
    report = plots.read(arguments.report, "solve")
    solver, columns = report["solver"], report["columns"]

    plt = plots.pyplot(arguments.output, 9)
    figure, axes = plt.subplots(figsize=(6.4, 3.8))
    drawn = False
    for j, column in enumerate(columns[:MOST_COLUMNS]):
        of_column = f", column {j}" if len(columns) > 1 else ""
        for key, label, style in (("history", "residual", "-"), ("true_history", "true residual |b - A x|", ":")):
            iterations, norms = points(column.get(key, []))
            marker = "." if len(norms) == 1 else None
            if norms:
                axes.semilogy(iterations, norms, style, color=f"C{j}", marker=marker, linewidth=1.2 if style == "-" else 2.2, label=label + of_column)
                drawn = True
    if not drawn:
        plots.fail(f"{arguments.report}: all residuals are 0 or not finite")
    norms_of_b = {column["norm_of_b"] for column in columns if not isinstance(column["norm_of_b"], str)}
    for number, tolerance in enumerate(sorted({max(solver["rtol"] * norm, solver["atol"]) for norm in norms_of_b} - {0})[:MOST_COLUMNS]):
        axes.axhline(tolerance, color="0.4", linestyle="--", linewidth=0.8, label=None if number else "tolerance")
    axes.set_xlabel("iteration")
    axes.set_ylabel(f"norm of the residual ({solver['residual_norm']})")
    more = f", the first {MOST_COLUMNS} of {len(columns)} columns" if len(columns) > MOST_COLUMNS else ""
    matrix, preconditioner = report["matrix"], solver["preconditioner"]
    title = f"{solver['name']}" + (f", {preconditioner}" if preconditioner != "none" else "") + more
    axes.set_title(f"{matrix['name']} ({matrix['rows']:,} rows, {matrix['nnz']:,} nonzeros)\n{title}", fontsize=9)
    axes.grid(alpha=0.3, linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    plots.save(figure, arguments.output)


if __name__ == "__main__":
    main()
