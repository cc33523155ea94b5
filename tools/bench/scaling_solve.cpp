#include "tools/bench/scaling_solve.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/base/text.h"
#include "tools/bench/scaling_notes.h"
#include "tools/cli/samples.h"

namespace shardmat::tools {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kWidth = 120;
constexpr double kUnsteadySolves = 1.5;  ///< the longest repetition over the shortest

/// A figure of a report; infinity and NaN, which JSON lacks, stand there as text and become 0.
double figure_of(const ordered_json& value) { return value.is_number() ? value.get<double>() : 0; }

void read_figures(SolveCase& one) {
  if (one.report.empty()) return;
  const ordered_json r = ordered_json::parse(one.report);
  SolveCase::Figures& f = one.figures;
  f.solver = r.at("solver").at("name"), f.preconditioner = r.at("solver").at("preconditioner");
  f.exchange = r.at("exchange").at("name"), f.backend = r.at("backend").at("name");
  f.device = r.at("ranks").at(0).at("device"), f.type = r.at("matrix").at("type");
  f.rows = r.at("matrix").at("rows"), f.nnz = r.at("matrix").at("nnz"), f.iterations = r.at("iterations");
  f.threads = r.at("threads_per_rank");
  f.an_iteration = r.at("seconds_an_iteration"), f.product = r.at("product_s"), f.exchange_alone = r.at("exchange_s");
  f.bytes = r.at("device_bytes").at("max");
  for (const ordered_json& column : r.at("columns"))
    if (const double norm = figure_of(column.at("norm_of_b")); norm > 0)
      f.residual = std::max(f.residual, figure_of(column.at("true_residual")) / norm);
}

double seconds_of_phase(const SolveReport& report, const std::string& name) {
  for (const Phase& phase : report.phases)
    if (phase.name == name) return phase.seconds.max;
  return 0;
}

std::vector<std::string> doubts_of(const SolveCase& one) {
  std::vector<std::string> notes;
  if (one.host_ranks * one.figures.threads > one.host_cores && one.figures.backend == "host")
    notes.push_back(fmt::format("{} with {} each share {} of a host: they take turns", counted(one.host_ranks, "rank"),
                                counted(one.figures.threads, "thread"), counted(one.host_cores, "core")));
  const std::vector<double> wholes = one.wholes();
  const auto [least, most] = std::minmax_element(wholes.begin(), wholes.end());
  if (*most > kUnsteadySolves * *least)
    notes.push_back(fmt::format("unsteady: the same took {} to {}", human_seconds(*least), human_seconds(*most)));
  return notes;
}

std::string line_of_solve(const SolveCase& one) {
  if (!one.measured()) {
    const std::string begins = fmt::format(" {:>5} {:<24} ", one.ranks, one.preconditioner);
    return begins + wrapped(one.why_not, begins.size(), kWidth).substr(begins.size());
  }
  const SolveCase::Figures& f = one.figures;
  const std::string method =
      fmt::format("{}{} + {}", one.preconditioner == "auto" ? "auto: " : "", f.solver, f.preconditioner);
  return fmt::format(" {:>5} {:<24} {:>10} {:>10} {:>10} {:>10} {:>11} {:>10} {:>10} {:>9.1f} %{}\n", one.ranks, method,
                     human_seconds(one.whole()), human_seconds(median_of_samples(one.set_up)),
                     human_seconds(median_of_samples(one.solve)), human_count(f.iterations), human_seconds(f.an_iteration),
                     human_seconds(f.product), human_seconds(f.exchange_alone), std::min(100 * one.efficiency, 9999.9),
                     one.notes.empty() ? "" : " !");
}

std::string heading_of(const std::vector<SolveCase>& cases, const SolveCase& first) {
  std::string line = fmt::format("Solves of {} ({} scaling)", first.matrix, first.weak() ? "weak" : "strong");
  for (const SolveCase& one : cases)
    if (one.matrix == first.matrix && one.measured()) {
      const SolveCase::Figures& f = one.figures;
      line += fmt::format(": {} rows, {} nonzeros{}, {}, {} on {}", human_count(f.rows), human_count(f.nnz),
                          one.weak() ? fmt::format(" on {}", one.ranks) : "", f.type, f.backend, f.device);
      break;
    }
  return wrapped(line, 0, kWidth) + fmt::format(" {:>5} {:<24} {:>10} {:>10} {:>10} {:>10} {:>11} {:>10} {:>10} {:>11}\n",
                                                "ranks", "method", "whole =", "set-up +", "solve", "iterations",
                                                "an iteration", "product", "x alone", "efficiency");
}

}  // namespace

std::vector<double> SolveCase::wholes() const {
  std::vector<double> sums;
  for (std::size_t i = 0; i < solve.size(); ++i) sums.push_back(set_up[i] + solve[i]);
  return sums;
}

double SolveCase::whole() const { return median_of_samples(wholes()); }

void measure_solves(SolveCase& one, const SolveOptions& options, int repetitions, Communicator& ranks) {
  for (int i = 0; i < repetitions; ++i) {
    const SolveReport report = solve(ranks, options);
    if (!report.result.converged()) {
      const SolvedColumn& column = report.result.columns.front();
      one.why_not = fmt::format("{} with {} did not converge: {} after {}", report.solver, report.preconditioner,
                                name(column.reason), human_count(report.result.iterations, "iteration"));
      one.set_up.clear(), one.solve.clear();
      return;
    }
    one.set_up.push_back(seconds_of_phase(report, "set up solver"));
    one.solve.push_back(report.result.seconds);
    if (i + 1 == repetitions) one.report = to_json(report);
  }
  read_figures(one);
}

void find_efficiencies(std::vector<SolveCase>& cases) {
  for (SolveCase& one : cases) {
    if (!one.measured()) continue;
    const SolveCase* first = &one;
    for (const SolveCase& other : cases)
      if (other.measured() && other.matrix == one.matrix && other.preconditioner == one.preconditioner &&
          other.ranks < first->ranks)
        first = &other;
    one.base_ranks = first->ranks;
    one.efficiency = one.whole() > 0 ? first->whole() / one.whole() : 0;
    if (!one.weak()) one.efficiency *= static_cast<double>(first->ranks) / one.ranks;
    one.notes = doubts_of(one);
  }
}

std::string table(const std::vector<SolveCase>& cases) {
  if (cases.empty()) return {};
  std::string text;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const SolveCase& one = cases[i];
    if (i == 0 || one.matrix != cases[i - 1].matrix) text += (i > 0 ? "\n" : "") + heading_of(cases, one);
    text += line_of_solve(one);
    if (i + 1 < cases.size() && cases[i + 1].matrix == one.matrix) continue;
    for (const SolveCase& noted : cases)
      if (noted.matrix == one.matrix)
        for (const std::string& note : noted.notes)
          text +=
              wrapped(fmt::format("note: {}, {}: {}", counted(noted.ranks, "rank"), noted.preconditioner, note), 2, kWidth);
  }
  return text +
         "\nwhole: from the rows on the ranks to x, median of the repetitions, slowest rank; set-up: of solver and\n"
         "preconditioner; efficiency: of perfect scaling of the whole, with the same preconditioner on the fewest ranks;\n"
         "product, x alone: one of each, timed after the solve\n";
}

ordered_json to_json(const SolveCase& one) {
  ordered_json j{
      {"matrix", one.matrix}, {"weak", one.weak()}, {"ranks", one.ranks}, {"preconditioner_asked", one.preconditioner}};
  if (!one.measured()) {
    j["why_not"] = one.why_not;
    return j;
  }
  const SolveCase::Figures& f = one.figures;
  j.update({{"efficiency", one.efficiency},
            {"base_ranks", one.base_ranks},
            {"host_ranks", one.host_ranks},
            {"host_cores", one.host_cores},
            {"whole_s", one.whole()},
            {"set_up_s", median_of_samples(one.set_up)},
            {"solve_s", median_of_samples(one.solve)},
            {"iterations", f.iterations},
            {"residual", f.residual},
            {"samples", {{"set_up_s", one.set_up}, {"solve_s", one.solve}}},
            {"notes", one.notes},
            {"report", ordered_json::parse(one.report)}});
  return j;
}

SolveCase solve_case_from_json(const ordered_json& json) {
  SolveCase one;
  one.matrix = json.at("matrix"), one.preconditioner = json.at("preconditioner_asked"), one.ranks = json.at("ranks");
  if (json.contains("why_not")) {
    one.why_not = json.at("why_not");
    return one;
  }
  one.host_ranks = json.at("host_ranks"), one.host_cores = json.at("host_cores");
  json.at("samples").at("set_up_s").get_to(one.set_up);
  json.at("samples").at("solve_s").get_to(one.solve);
  one.report = json.at("report").dump();
  read_figures(one);
  return one;
}

}  // namespace shardmat::tools
