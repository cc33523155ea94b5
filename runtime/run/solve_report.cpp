#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "kernels/base/text.h"
#include "runtime/run/report_parts.h"
#include "runtime/run/solve.h"
#include "runtime/solvers/method_choice.h"
#include "runtime/solvers/solver_settings.h"

namespace shardmat {
namespace {

using namespace reporting;
using nlohmann::ordered_json;

/// The value of a setting of a solver.
ordered_json json_of(const SolverSetting& setting, const std::string& value) {
  if (setting.flag) return value == "1";
  if (!setting.choices.empty() || setting.text) return value;
  if (setting.whole) return static_cast<std::int64_t>(std::stoll(value));
  return number(std::stod(value));
}

/// Settings that the report tells elsewhere: with what was chosen, or with what was found.
const std::set<std::string> kTold{"solver", "preconditioner", "variant", "penalty_rows"};

/// The settings of one method or preconditioner that this one looks at: "restart 30, gram_schmidt classical".
std::string settings_text(const SolverOptions& options) {
  std::string text;
  for (const SolverSetting& setting : solver_settings())
    if (!setting.users.empty() && setting.is_used(options) && setting.name != "variant")
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", setting.name, setting.get(options));
  return text;
}

std::string preconditioner_text(const SolveReport& r) {
  std::string text = r.preconditioner_note;
  if (!r.preconditioner_why.empty()) text = "auto: " + r.preconditioner_why + (text.empty() ? "" : "; " + text);
  return text.empty() ? "" : fmt::format(" ({})", text);
}

std::string residual_text(double residual, double norm_of_b) {
  return norm_of_b > 0 ? fmt::format("{:.3e} = {:.3e} of b", residual, residual / norm_of_b)
                       : fmt::format("{:.3e}", residual);
}

/// Of the column whose estimate is the largest; all columns have the same matrix.
const Spectrum* spectrum_of(const SolveResult& result) {
  const Spectrum* found = nullptr;
  for (const SolvedColumn& c : result.columns)
    if (c.spectrum && (found == nullptr || c.spectrum->condition() > found->condition())) found = &*c.spectrum;
  return found;
}

std::string condition_text(const SolveReport& r) {
  const Spectrum* const s = spectrum_of(r.result);
  if (s == nullptr) return {};
  const bool of_cg = r.solver == "cg";
  return fmt::format("{:.3g} or more{}: {} values of these iterations from {:.3g} to {:.3g}", s->condition(),
                     r.preconditioner == "none" ? "" : ", of the preconditioned matrix", of_cg ? "Ritz" : "singular",
                     s->least, s->largest);
}

/// What a smallest Ritz value of the size of rounding errors tells, where the solver did not converge.
std::string singular_text(const SolveReport& r) {
  if (r.result.maps_constants_to_zero)
    return "A maps constant vectors to 0 (as a Laplacian with Neumann or periodic conditions only): set the null space to "
           "constant";
  if (r.result.maps_more_to_zero)
    return "A maps constant vectors to 0, and others, too (as a structure without supports): hold some unknowns, or set the "
           "null space to rigid";
  const Spectrum* const s = spectrum_of(r.result);
  if (s == nullptr || r.result.converged() || r.result.null_vectors > 0) return {};
  const double rounding = r.type == "f32" ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  if (std::abs(s->least) > 32 * rounding * s->largest) return {};
  return fmt::format(
      "perhaps: {} cannot tell the least Ritz value from 0. If A maps constant vectors to 0 (a Laplacian with "
      "Neumann or periodic conditions only), set the null space to constant",
      r.type);
}

std::string advice_text(const AdviceTrial& trial) {
  if (!trial.failure.empty()) return "another preconditioner could not be tried: " + trial.failure;
  if (!trial.advice) return {};
  const Advice& a = *trial.advice;
  return fmt::format(
      "take {}{}: its first {} iterations reduced the residual {} {} of these ({}{:.1f} times fewer, measured)",
      a.preconditioner, a.note.empty() ? "" : fmt::format(" ({})", a.note), human_count(a.iterations),
      a.at_least ? "further than all" : "as far as", human_count(a.instead_of), a.at_least ? "at least " : "",
      static_cast<double>(a.instead_of) / static_cast<double>(a.iterations));
}

const SolvedColumn* slowest_of(const SolveResult& result) {
  const auto found =
      std::max_element(result.columns.begin(), result.columns.end(),
                       [](const SolvedColumn& a, const SolvedColumn& b) { return a.iterations < b.iterations; });
  return found == result.columns.end() ? nullptr : &*found;
}

/// By how much an iteration reduced the residual, on average; 0 if nothing is known.
double convergence_factor(const SolvedColumn& column) {
  if (column.history.size() < 2 || !(column.history.front() > 0) || !(column.history.back() > 0)) return 0;
  return std::pow(column.history.back() / column.history.front(), 1 / static_cast<double>(column.history.size() - 1));
}

/// What is known about multigrid without a trial: it is slow here, or was not asked for.
std::string multigrid_text(const SolveReport& r) {
  constexpr std::int64_t kSlowOfMultigrid = 60, kSlow = 200;
  const SolvedColumn* const column = slowest_of(r.result);
  if (column == nullptr) return {};
  if (r.multigrid) {
    if (column->iterations < kSlowOfMultigrid) return {};
    const bool smoothed = r.multigrid->smoothed;
    const auto with = [&](const char* text) { return r.multigrid->modes.find(text) != std::string::npos; };
    return fmt::format(
        "an iteration with multigrid reduces the residual to {:.2f} of it only: {}", convergence_factor(*column),
        with("no coordinates") && smoothed
            ? "give the coordinates of the nodes, or take near_null_space adaptive (a longer set-up)"
        : with("no coordinates")                 ? "give the coordinates of the nodes"
        : !smoothed && r.multigrid->cycle != "K" ? "take fgmres with the cycle K"
        : smoothed && with("constant") && !with("adaptive")
            ? "take near_null_space adaptive (a longer set-up), try smoother_degree 3, or take block_jacobi"
        : with("adaptive") ? "give the coordinates of the nodes, or try smoother_degree 3"
                           : "try smoother_degree 3, give the near-null vectors of the problem, or take block_jacobi");
  }
  const bool could = r.solver == "cg" && r.backend == "host" && r.rows >= kFewRowsForMultigrid &&
                     r.result.fall_backs.empty() && r.preconditioner_why.empty() && column->iterations >= kSlow;
  return could ? "multigrid takes 10 to 50 iterations on most such matrices; it was not tried" : "";
}

/// After 200 iterations: how many more did they foretell?
std::string direct_text(const SolveReport& r) {
  constexpr std::int64_t kLook = 200, kMany = 500;
  const SolvedColumn* const column = slowest_of(r.result);
  if (column == nullptr || r.direct || std::ssize(column->history) <= kLook) return {};
  const double target = std::max(*r.settings.rtol * column->norm_of_b, r.settings.atol);
  const double first = column->history.front(), then = column->history[kLook];
  if (!(target > 0) || !(then > target) || !(first > 0)) return {};
  const double rate = std::log(first / then) / kLook, more = rate > 0 ? std::log(then / target) / rate : HUGE_VAL;
  if (!(more > kMany) || (r.result.converged() && column->iterations < kLook + kMany)) return {};
  return fmt::format("after {} iterations their rate foretold {}: take the solver direct, if its factors fit in memory",
                     kLook, more < 1e9 ? human_count(static_cast<std::int64_t>(more)) + " more" : "no end");
}

/// How the true residuals were computed.
std::string sums_text(const SolveReport& r) {
  if (r.type == "f64") return "computed anew";
  return r.result.why_f32.empty() ? "computed anew, summed in f64" : "computed anew, summed in f32: " + r.result.why_f32;
}

/// Where rounding errors may decide.
std::string rounding_text(const SolvedColumn& c) {
  if (!(c.floor > 0)) return {};
  return fmt::format("allow a residual of {:.3e} (2 ε ‖ |A| |x| ‖)", c.floor);
}

/// The norm that an error bound is in.
const char* error_norm(const SolveReport& r) {
  if (r.solver == "cg") return "energy";
  return r.preconditioner == "none" ? "2-norm" : "preconditioned";
}

std::string error_text(const SolveReport& r, const SolvedColumn& c) {
  if (c.reason == SolveReason::least_squares)
    return fmt::format("of least squares: z = M·(b − A·x) has ‖A·z‖ = {:.1e}·‖A‖·‖z‖", c.normal_residual);
  const std::string backward = fmt::format("backward ‖b − A·x‖ / (‖A‖·‖x‖ + ‖b‖) = {:.1e}", c.backward_error);
  if (!c.error_bound)
    return fmt::format("{}; that of x is not estimated: {}", backward,
                       c.spectrum         ? "the least eigenvalue is 0 or less"
                       : c.iterations < 2 ? "the iterations are too few"
                                          : r.solver + " tells no condition number");
  const std::string_view norm = error_norm(r);
  return fmt::format("of x at most about {:.1e} of x, in the {}, if the condition is as below; {}", *c.error_bound,
                     norm == "energy"           ? "energy norm"
                     : norm == "preconditioned" ? "norm in which the preconditioner is 1"
                                                : norm,
                     backward);
}

void write_column(Table& t, const SolveReport& r, const SolvedColumn& c) {
  t.row("reason", fmt::format("{}: {}", name(c.reason), r.result.explanation(c)));
  t.row("iterations", human_count(c.iterations) +
                          (c.replacements == 0 ? "" : fmt::format(", {} replacements of the residual", c.replacements)) +
                          (c.breakdowns == 0 ? "" : fmt::format(", begun anew after {} breakdowns", c.breakdowns)));
  t.row("residual", residual_text(c.residual, c.norm_of_b) + ", as the method updated it");
  t.row("true residual", residual_text(c.true_residual, c.norm_of_b) + ", " + sums_text(r));
  t.row("rounding errors", rounding_text(c));
  t.row("error", error_text(r, c));
}

/// What was removed from b.
std::string null_space_text(const SolveReport& r) {
  if (r.result.null_vectors == 0) return r.result.null_space;
  const double rounding = r.type == "f32" ? 1e-6 : 1e-12;
  const std::vector<SolvedColumn>& columns = r.result.columns;
  std::int64_t inconsistent = 0;
  double most = 0;
  for (const SolvedColumn& c : columns) {
    inconsistent += c.removed_from_b > rounding * c.norm_of_b;
    most = std::max(most, c.removed_from_b);
  }
  const std::string& what = r.result.null_space;
  if (inconsistent == 0) return what + "; b is consistent";
  return fmt::format("{}; b was not consistent{}: a part of norm {:.3e}{} was removed. x is the answer of least squares",
                     what, columns.size() == 1 ? "" : fmt::format(" in {} of {} columns", inconsistent, columns.size()),
                     most, columns.size() == 1 ? "" : " at most");
}

/// Which rows state known values, and what the residuals are of.
std::string penalty_text(const SolveReport& r) {
  if (r.result.penalty_rows == 0) return r.result.penalty_note;
  const bool one = r.result.penalty_rows == 1;
  const std::string ratio =
      r.result.penalty_ratio > 0 ? fmt::format(" (diagonal up to {:.2g} times the others)", r.result.penalty_ratio) : "";
  return fmt::format(
      "{} row{} state{} known values{}: x is b / diagonal there; norms and residuals are of the other rows, "
      "‖b‖ of b − A·(known values){}{}",
      human_count(r.result.penalty_rows), one ? "" : "s", one ? "s" : "", ratio, r.result.penalty_note.empty() ? "" : "; ",
      r.result.penalty_note);
}

void write_columns(Table& t, const std::vector<SolvedColumn>& columns) {
  constexpr std::size_t kMost = 32;
  t.line("  column  iterations      residual  true residual  reason");
  for (std::size_t j = 0; j < std::min(columns.size(), kMost); ++j)
    t.line(fmt::format("  {:>6}  {:>10}  {:>12.3e}  {:>13.3e}  {}", j, human_count(columns[j].iterations),
                       columns[j].residual, columns[j].true_residual, name(columns[j].reason)));
  if (columns.size() > kMost) t.line(fmt::format("  … and {} more", columns.size() - kMost));
}

/// The bytes of a part, and how fast they moved. `copy`: the copy bandwidth, or 0.
std::string bytes_text(const IterationPart& part, double copy) {
  if (part.bytes == 0) return "–";
  if (part.name == "exchange") return human_bytes(part.bytes) + " received";
  if (!(part.seconds > 0)) return human_bytes(part.bytes);
  const double rate = part.bytes / part.seconds;
  const std::string share = copy == 0     ? ""
                            : rate > copy ? ", from caches"
                                          : fmt::format(" = {:.0f} % of a copy's", 100 * rate / copy);
  return fmt::format("{}, {}{}", human_bytes(part.bytes), rate_text(rate), share);
}

std::string memory_limit_text(const SolveReport& r, double bytes) {
  const double copy = r.copy_bandwidth.mean, least = copy > 0 ? bytes / copy : 0;
  if (least == 0) return {};
  if (least > r.seconds_an_iteration) return "none: caches hold some of these bytes";
  return fmt::format("{} = {:.0f} % of the time, if these {} move as fast as a copy in this run ({} a rank)",
                     human_seconds(least), 100 * least / r.seconds_an_iteration, human_bytes(bytes), rate_text(copy));
}

void write_times(Table& t, const SolveReport& r) {
  t.section(fmt::format("{:<24} {:>11} {:>7}   {:<10} {}", "An iteration, on average", "time", "share", "",
                        "bytes a rank at least, rate"));
  double bytes = 0;
  for (const IterationPart& part : r.parts) {
    const std::string label = part.name == "vectors" ? "vectors, the rest" : part.name;
    const std::string each = part.count == 1 ? "" : fmt::format("{:.3g} times", part.count);
    t.line(fmt::format("  {:<22} {:>11} {:>5.0f} %   {:<10} {}", label, human_seconds(part.seconds),
                       100 * part.seconds / r.seconds_an_iteration, each, bytes_text(part, r.copy_bandwidth.mean)));
    if (part.name != "exchange") bytes += part.bytes;
  }
  t.line(fmt::format("  {:<22} {:>11}", "all", human_seconds(r.seconds_an_iteration)));
  t.row("parts", r.parts_failure.empty() ? "" : "not measured: " + r.parts_failure);
  t.row("memory limit", memory_limit_text(r, bytes));
}

void write_levels(Table& t, const MultigridReport& r) {
  const bool several = !r.levels.empty() && r.levels.front().ranks > 1;
  t.section(fmt::format("{:<14} {:>13} {:>15} {:>9} {:>8}{}", "Multigrid", "unknowns", "nonzeros", "a row", "radius",
                        several ? "   ranks" : ""));
  for (std::size_t l = 0; l < r.levels.size(); ++l) {
    const LevelReport& level = r.levels[l];
    const auto unknowns = static_cast<double>(level.unknowns);
    t.line(fmt::format("  {:<12} {:>13} {:>15} {:>9.1f} {:>8}{}", fmt::format("level {}", l), human_count(level.unknowns),
                       human_count(level.nonzeros), static_cast<double>(level.nonzeros) / unknowns,
                       level.exact        ? "exact"
                       : level.radius > 0 ? fmt::format("{:.2f}", level.radius)
                                          : "-",
                       several ? fmt::format("{:>8}", level.ranks) : ""));
  }
  t.row("together", fmt::format("{:.2f} times the nonzeros of level 0; {} on all ranks; set up in {}", r.operator_complexity,
                                human_bytes(static_cast<double>(r.bytes)), human_seconds(r.seconds)));
  std::string parts;
  for (const SetupPart& part : r.parts)
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", part.name, human_seconds(part.seconds));
  t.row("set-up", parts);
  if (r.set_up_on_gpu) t.row("set up on", "the GPU");
  else if (!r.why_on_host.empty()) t.row("set up on", fmt::format("the host: {}", r.why_on_host));
  t.row("coarse space", r.modes + (r.smoothed ? "" : ", not smoothed: the matrix is far from symmetric"));
  t.row("cycle", fmt::format("{}, smoother {}", r.cycle, r.smoother));
}

ordered_json json_of(const MultigridReport& r) {
  ordered_json levels = ordered_json::array();
  for (const LevelReport& level : r.levels) {
    levels.push_back({{"unknowns", level.unknowns}, {"nonzeros", level.nonzeros}, {"ranks", level.ranks}});
    if (level.radius > 0) levels.back()["radius"] = level.radius;
  }
  ordered_json parts = ordered_json::array();
  for (const SetupPart& part : r.parts) parts.push_back({{"name", part.name}, {"seconds", part.seconds}});
  ordered_json all = {{"levels", levels},
                      {"operator_complexity", r.operator_complexity},
                      {"near_null_space", r.modes},
                      {"cycle", r.cycle},
                      {"smoother", r.smoother},
                      {"smoothed", r.smoothed},
                      {"setup_seconds", r.seconds},
                      {"setup_parts", parts},
                      {"setup_on_gpu", r.set_up_on_gpu},
                      {"memory_bytes", r.bytes}};
  if (!r.why_on_host.empty()) all["why_setup_on_host"] = r.why_on_host;
  return all;
}

ordered_json json_of(const DirectReport& r) {
  ordered_json j{{"library", r.library},
                 {"factors", r.kind},
                 {"ordering", r.ordering},
                 {"nonzeros", r.nonzeros},
                 {"memory_bytes", r.bytes},
                 {"negative_pivots", r.negative},
                 {"zero_pivots", r.null_pivots},
                 {"analysis_seconds", r.analysis_seconds},
                 {"factorise_seconds", r.factorise_seconds},
                 {"solve_seconds", r.solve_seconds},
                 {"solves", r.solves}};
  if (!r.note.empty()) j["note"] = r.note;
  return j;
}

ordered_json json_of(const std::vector<double>& norms) {
  ordered_json list = ordered_json::array();
  for (const double norm : norms) list.push_back(number(norm));
  return list;
}

ordered_json json_of(const std::vector<SolveAttempt>& attempts) {
  ordered_json list = ordered_json::array();
  for (const SolveAttempt& attempt : attempts)
    list.push_back({{"name", attempt.solver},
                    {"preconditioner", attempt.preconditioner},
                    {"iterations", attempt.iterations},
                    {"seconds", attempt.seconds}});
  return list;
}

/// Of several attempts, what each took: "150 of cg with multigrid in 1.2 s, 3 of direct with direct in 3 ms".
std::string attempts_text(const std::vector<SolveAttempt>& attempts) {
  if (attempts.size() < 2) return {};
  std::vector<std::string> each;
  for (const SolveAttempt& attempt : attempts)
    each.push_back(fmt::format("{} of {} with {} in {}", human_count(attempt.iterations), attempt.solver,
                               attempt.preconditioner, human_seconds(attempt.seconds)));
  return fmt::format("{}", fmt::join(each, ", "));
}

ordered_json json_of_columns(const SolveReport& r) {
  ordered_json columns = ordered_json::array();
  for (const SolvedColumn& c : r.result.columns) {
    ordered_json column{{"reason", name(c.reason)},
                        {"converged", converged(c.reason)},
                        {"iterations", c.iterations},
                        {"norm_of_b", number(c.norm_of_b)},
                        {"removed_from_b", number(c.removed_from_b)},
                        {"residual", number(c.residual)},
                        {"true_residual", number(c.true_residual)},
                        {"replacements", c.replacements},
                        {"breakdowns", c.breakdowns},
                        {"backward_error", number(c.backward_error)},
                        {"history", json_of(c.history)}};
    if (c.floor > 0) column["floor"] = number(c.floor);
    if (c.error_bound) column["error"] = {{"bound", number(*c.error_bound)}, {"norm", error_norm(r)}};
    if (c.reason == SolveReason::least_squares) column["normal_residual"] = number(c.normal_residual);
    if (!c.true_history.empty()) column["true_history"] = json_of(c.true_history);
    if (c.spectrum)
      column["spectrum"] = {{"least", number(c.spectrum->least)},
                            {"largest", number(c.spectrum->largest)},
                            {"condition", number(c.spectrum->condition())}};
    columns.push_back(std::move(column));
  }
  return columns;
}

}  // namespace

std::string to_text(const SolveReport& r) {
  Table t;
  write_setup(t, r);
  t.row("solver", r.solver + (r.solver_why.empty() ? "" : fmt::format(" (auto: {})", r.solver_why)));
  if (r.variant) t.row("variant", fmt::format("{} ({})", name(r.variant->variant), r.variant->why));
  t.row("preconditioner", r.preconditioner + preconditioner_text(r));
  for (const std::string& fall_back : r.result.fall_backs) t.row("fell back", fall_back);
  t.row("iterations", attempts_text(r.result.attempts));
  t.row("ends at", fmt::format("residual ({}) ≤ max({:g}·‖b‖, {:g}), or {} iterations", r.residual_norm, *r.settings.rtol,
                               r.settings.atol, human_count(r.settings.max_iterations)));
  t.row("settings", settings_text(r.settings));
  t.row("null space", null_space_text(r));
  t.row("penalty rows", penalty_text(r));
  t.row("dot products", r.sums == "none" ? "" : "summed over the ranks by " + r.sums);
  if (r.multigrid) write_levels(t, *r.multigrid);
  write_phases(t, r.phases);
  if (r.result.iterations > 0) write_times(t, r);
  t.row("memory a rank", fmt::format("{} for matrix, solver and vectors; {} peak of the process",
                                     min_mean_max(r.device_bytes, human_bytes), human_bytes(r.host_peak_bytes.max)));
  t.section("Result");
  if (r.result.columns.size() == 1) write_column(t, r, r.result.columns[0]);
  else write_columns(t, r.result.columns);
  if (r.result.columns.size() > 1 && r.type != "f64") t.row("true residual", sums_text(r));
  t.row("condition", condition_text(r));
  t.row("singular", singular_text(r));
  t.row("advice", advice_text(r.advice));
  t.row("multigrid", multigrid_text(r));
  t.row("direct", direct_text(r));
  if (!r.output.empty()) t.row("written", r.output);
  return t.text();
}

std::string to_json(const SolveReport& r) {
  ordered_json j{{"matrix", json_of_matrix(r)},
                 {"solver",
                  {{"name", r.solver},
                   {"preconditioner", r.preconditioner},
                   {"preconditioner_note", r.preconditioner_note},
                   {"b", r.b},
                   {"initial_guess", r.initial_guess}}},
                 {"converged", r.result.converged()},
                 {"iterations", r.result.iterations},
                 {"convergence_factor", number(slowest_of(r.result) ? convergence_factor(*slowest_of(r.result)) : 0)},
                 {"true_residual_type", r.result.why_f32.empty() ? "f64" : "f32"},
                 {"columns", json_of_columns(r)}};
  if (r.result.maps_constants_to_zero) j["maps_constants_to_zero"] = true;
  if (r.result.maps_more_to_zero) j["maps_more_to_zero"] = true;
  for (const SolverSetting& setting : solver_settings())
    if (!kTold.count(setting.name) && setting.is_used(r.settings))
      j["solver"][setting.name] = json_of(setting, setting.get(r.settings));
  if (!r.near_null_vectors.empty()) j["solver"]["near_null_vectors"] = r.near_null_vectors;
  if (r.multigrid) j["multigrid"] = json_of(*r.multigrid);
  if (r.direct) j["direct"] = json_of(*r.direct);
  if (!r.solver_why.empty()) j["solver"]["why"] = r.solver_why;
  if (!r.preconditioner_why.empty()) j["solver"]["preconditioner_why"] = r.preconditioner_why;
  if (!r.result.fall_backs.empty()) j["solver"]["fall_backs"] = r.result.fall_backs;
  if (r.result.attempts.size() > 1) j["solver"]["attempts"] = json_of(r.result.attempts);
  if (!r.result.null_space.empty()) j["solver"]["null_space_found"] = r.result.null_space;
  if (r.result.null_vectors > 0) j["solver"]["null_vectors"] = r.result.null_vectors;
  if (r.variant) {
    j["solver"]["variant"] = name(r.variant->variant);
    j["solver"]["variant_why"] = r.variant->why;
  }
  j["penalty_rows"] = {{"choice", name(r.settings.penalty_rows)},
                       {"count", r.result.penalty_rows},
                       {"largest_ratio", number(r.result.penalty_ratio)}};
  if (!r.result.penalty_note.empty()) j["penalty_rows"]["note"] = r.result.penalty_note;
  if (r.advice.advice)
    j["advice"] = {{"preconditioner", r.advice.advice->preconditioner},
                   {"preconditioner_note", r.advice.advice->note},
                   {"iterations", r.advice.advice->iterations},
                   {"instead_of", r.advice.advice->instead_of},
                   {"at_least", r.advice.advice->at_least}};
  ordered_json parts = ordered_json::array();
  for (const IterationPart& part : r.parts)
    parts.push_back({{"name", part.name}, {"count", part.count}, {"seconds", part.seconds}, {"bytes", part.bytes}});
  j["parts"] = parts;
  if (r.copy_bandwidth.mean > 0) j["copy_bandwidth_bytes_per_s"] = json(r.copy_bandwidth);
  add_json_of_run(r, r.result.seconds, j);
  return j.dump(2) + "\n";
}

}  // namespace shardmat
