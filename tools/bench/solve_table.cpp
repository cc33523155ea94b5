#include "tools/bench/solve_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "tools/bench/peer_pairs.h"

namespace shardmat::tools {
namespace {

constexpr double kSlack = 1.1;  ///< of a residual over the tolerance

double worst_residual(const SolverAnswers& solver) {
  double worst = 0;
  for (const TimedAnswer& answer : solver.answers) worst = answer.residual <= worst ? worst : answer.residual;  // also NaN
  return worst;
}

double median(const SolverAnswers& solver, const std::function<double(const TimedAnswer&)>& figure) {
  std::vector<double> figures;
  for (const TimedAnswer& answer : solver.answers) figures.push_back(figure(answer));
  return median_of(std::move(figures));
}

Cell milliseconds(double seconds) { return {seconds, fmt::format("{:.1f}", 1e3 * seconds)}; }

/// With which of ours a solver is compared; null: with none.
const SolverAnswers* partner_of(const SolverAnswers& solver, const std::vector<SolverAnswers>& all) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const SolverAnswers& other) {
    return other.own && (solver.own || other.preconditioner == solver.preconditioner);
  });
  return found == all.end() || &*found == &solver ? nullptr : &*found;
}

void add_ratio(std::vector<Cell>& row, const SolverAnswers& solver, const SolverAnswers& partner) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < solver.answers.size(); ++i)
    ratios.push_back(solver.answers[i].whole() / partner.answers[i].whole());
  const MedianInterval ratio = median_interval(ratios);
  for (const Cell& cell : {Cell::figure(ratio.median, 2), Cell::figure(ratio.low, 2), Cell::figure(ratio.high, 2),
                           Cell::word(partner.preconditioner)})
    row.push_back(cell);
}

/// The residual over the time since the set-up began. All iterations of a solve are given the same time: they do the same
/// work.
Cell history_of(const SolverAnswers& solver) {
  if (!solver.sets_up || solver.history.size() < 2) return Cell::none();
  const double set_up = median(solver, [](const TimedAnswer& a) { return a.set_up; });
  const double iteration =
      median(solver, [](const TimedAnswer& a) { return a.solve; }) / static_cast<double>(solver.history.size() - 1);
  std::vector<double> seconds;
  for (std::size_t i = 0; i < solver.history.size(); ++i) seconds.push_back(set_up + iteration * static_cast<double>(i));
  return {{{"seconds", seconds}, {"residual", solver.history}}, ""};
}

}  // namespace

bool is_right(double residual, double rtol) { return rtol == 0 || residual <= kSlack * rtol; }

ResultTable solve_table(double rtol, bool cpu_clock) {
  ResultTable table;
  table.title = fmt::format("Answers to A·x = 1, ‖b − A·x‖ ≤ {:g}·‖b‖; milliseconds of {}", rtol,
                            cpu_clock ? "CPU time of one thread" : "wall time");
  table.columns = {{"matrix", "matrix"},
                   {"rows", "rows", false},
                   {"nnz", "nonzeros", false},
                   {"solver", "solver"},
                   {"own", "own", false},
                   {"preconditioner", "preconditioner", false},
                   {"detail", "detail", false},
                   {"set_up_s", "set-up"},
                   {"refresh_s", "refresh"},
                   {"solve_s", "solve"},
                   {"whole_s", "whole"},
                   {"iterations", "iterations"},
                   {"residual", "residual"},
                   {"right", "right", false},
                   {"bytes", "MB"},
                   {"ratio", "ratio"},
                   {"ratio_low", "from"},
                   {"ratio_high", "to"},
                   {"over", "over"},
                   {"history", "history", false},
                   {"samples_s", "samples", false}};
  return table;
}

void add_rows(ResultTable& table, const std::string& matrix, std::int64_t rows, std::int64_t nnz,
              const std::vector<SolverAnswers>& solvers, double rtol) {
  for (const SolverAnswers& solver : solvers) {
    const double residual = worst_residual(solver);
    const bool right = is_right(residual, rtol);
    std::vector<Cell> row{Cell::word(matrix),       Cell::count(rows), Cell::count(nnz),
                          Cell::word(solver.name),  {solver.own, ""},  Cell::word(solver.preconditioner),
                          Cell::word(solver.detail)};
    const auto time = [&](bool known, double TimedAnswer::*figure) {
      row.push_back(known ? milliseconds(median(solver, [&](const TimedAnswer& a) { return a.*figure; })) : Cell::none());
    };
    time(solver.sets_up, &TimedAnswer::set_up);
    time(solver.sets_up, &TimedAnswer::refresh);
    time(true, &TimedAnswer::solve);
    row.push_back(milliseconds(median(solver, [](const TimedAnswer& a) { return a.whole(); })));
    row.push_back(Cell::count(solver.answers.back().iterations));
    row.push_back({residual, fmt::format("{:.1e}{}", residual, right ? "" : " WRONG")});
    row.push_back({right, ""});
    const double bytes = median(solver, [](const TimedAnswer& a) { return static_cast<double>(a.bytes); });
    row.push_back(bytes > 0 ? Cell{bytes, fmt::format("{:.1f}", 1e-6 * bytes)} : Cell::none());
    const SolverAnswers* partner = partner_of(solver, solvers);
    if (partner != nullptr && right && is_right(worst_residual(*partner), rtol)) add_ratio(row, solver, *partner);
    else row.insert(row.end(), 4, Cell::none());
    row.push_back(history_of(solver));
    std::vector<double> wholes;
    for (const TimedAnswer& answer : solver.answers) wholes.push_back(answer.whole());
    row.push_back({wholes, ""});
    table.rows.push_back(std::move(row));
  }
}

}  // namespace shardmat::tools
