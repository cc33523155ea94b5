#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "kernels/base/text.h"
#include "runtime/run/eigen.h"
#include "runtime/run/report_parts.h"

namespace shardmat {
namespace {

using namespace reporting;
using nlohmann::ordered_json;

bool is_pair(const EigenReport& r) { return r.method == EigenMethod::lobpcg || r.method == EigenMethod::shift_invert; }

double frequency(double value) { return std::sqrt(std::max(0.0, value)) / (2 * std::numbers::pi); }

/// Of lobpcg and shift_invert.
void write_pair_method(Table& t, const EigenReport& r) {
  const PairResult& found = r.pair;
  const bool lobpcg = r.method == EigenMethod::lobpcg;
  t.section("Eigenvalues");
  t.row("problem", r.mass.empty() ? "K x = λ x" : fmt::format("K x = λ M x with M = {}", r.mass));
  t.row("method", lobpcg ? fmt::format("LOBPCG, a block of {} vectors", found.block)
                         : fmt::format("shift-invert Lanczos, blocks of {}, shift {:g}", found.block, found.shift));
  t.row("wanted", fmt::format("{} {}", r.settings.count, r.options_of_pair.shift ? "nearest to the shift" : "smallest"));
  t.row("ends at", fmt::format("residuals |Kx - λMx| of {:g} of |λ| |Mx|, or {} iterations", r.options_of_pair.tolerance,
                               human_count(r.options_of_pair.max_iterations)));
  t.row(lobpcg ? "preconditioner" : found.inner == "minres" ? "inner solves" : "factors", found.inverse);
  if (found.identity_rows > 0)
    t.row("supports", fmt::format("{} rows of K are those of the identity: they state known values, and are left out",
                                  human_count(found.identity_rows)));
  if (found.penalty_rows > 0)
    t.row("supports",
          fmt::format("{} rows of K have a diagonal up to {:.2g} times all else: they state known values, and are "
                      "left out",
                      human_count(found.penalty_rows), found.penalty_ratio));
}

void write_pair_times(Table& t, const EigenReport& r) {
  const PairResult& found = r.pair;
  const double all = found.seconds;
  const auto share = [&](double seconds) {
    return fmt::format("{} ({:.0f} %)", human_seconds(seconds), 100 * seconds / all);
  };
  t.section("Times");
  t.row("set-up and iterations", human_seconds(all));
  t.row("  set-up", share(found.setup_seconds));
  t.row("  products with K", share(found.product_seconds));
  t.row("  products with M", share(found.mass_seconds));
  t.row(r.method == EigenMethod::lobpcg ? "  preconditioner" : "  solves", share(found.inverse_seconds));
  if (found.count_seconds > 0) t.row("  counting", share(found.count_seconds));
}

void write_pairs(Table& t, const EigenReport& r) {
  const PairResult& found = r.pair;
  t.row("zero modes", found.zero_modes == 0 ? ""
                      : found.zero_modes == 6
                          ? "6 rigid-body modes: nothing holds the body"
                          : fmt::format("{} with λ = 0 up to rounding: motions that nothing holds", found.zero_modes));
  t.row("M-orthogonality", fmt::format("{:.1e}, the largest |xᵢᵀMxⱼ - δᵢⱼ|", found.orthogonality));
  t.row("complete", fmt::format("{}: {}", found.complete(),
                                found.completeness.empty() ? "not counted, as was asked for" : found.completeness));
  if (r.result.interrupted) t.row("interrupted", "the run was told to end; values are as far as they came");
  if (!r.output.empty()) t.row("written", r.output);
  t.line("  mode                        λ      frequency  |Kx - λMx|/(λ|Mx|)  converged");
  std::int64_t mode = 0;
  for (const Eigenpair& pair : r.result.pairs)
    t.line(fmt::format("  {:>4}  {:>23.16g}  {:>13.7g}  {:>18}  {}", ++mode, pair.value, frequency(pair.value),
                       pair.zero ? std::string("zero mode") : fmt::format("{:.1e}", pair.relative),
                       pair.converged ? "yes" : "no"));
}

ordered_json json_of_pair(const EigenReport& r) {
  const PairResult& found = r.pair;
  const PairOptions& o = r.options_of_pair;
  ordered_json pairs = ordered_json::array();
  for (const Eigenpair& pair : r.result.pairs)
    pairs.push_back({{"value", number(pair.value)},
                     {"frequency", number(frequency(pair.value))},
                     {"residual", number(pair.residual)},
                     {"relative_residual", number(pair.relative)},
                     {"zero", pair.zero},
                     {"converged", pair.converged}});
  ordered_json asked{{"method", name(r.method)}, {"which", o.shift ? "nearest" : "smallest"}, {"count", o.count},
                     {"tolerance", o.tolerance}, {"max_iterations", o.max_iterations},        {"seed", o.seed}};
  ordered_json of_pair{{"mass", r.mass},
                       {"zero_modes", found.zero_modes},
                       {"orthogonality", number(found.orthogonality)},
                       {"identity_rows", found.identity_rows},
                       {"block", found.block},
                       {"inverse", found.inverse},
                       {"complete", found.complete()},
                       {"completeness", found.completeness},
                       {"setup_s", found.setup_seconds},
                       {"k_products_s", found.product_seconds},
                       {"m_products_s", found.mass_seconds},
                       {"inverse_s", found.inverse_seconds}};
  if (r.method == EigenMethod::shift_invert) asked["shift"] = number(found.shift), of_pair["inner"] = found.inner;
  if (found.missing >= 0) of_pair["missing"] = found.missing;
  return {{"eigen", asked}, {"pair", of_pair}, {"pairs", pairs}};
}

void write_method(Table& t, const EigenReport& r) {
  const bool lanczos = r.method == EigenMethod::lanczos;
  t.section("Eigenvalues");
  t.row("method", lanczos ? fmt::format("thick-restart Lanczos, basis of {} vectors", r.settings.basis) : "power");
  t.row("wanted", lanczos ? fmt::format("{} {}{}", r.settings.count, name(r.settings.which),
                                        r.settings.which == Which::both ? ", of each end" : "")
                          : "the largest magnitude");
  t.row("ends at", fmt::format("residuals of {:g} of {}, or {} products", r.settings.tolerance,
                               lanczos ? "the largest estimate" : "the eigenvalue", human_count(r.settings.max_iterations)));
  t.row("dot products", r.sums == "none" ? "" : "summed over the ranks by " + r.sums);
}

std::string confirmed_text(const EigenReport& r) {
  if (r.method == EigenMethod::power) return "";
  return r.result.confirmed ? "no further copy of a multiple eigenvalue was found"
                            : "not checked: a multiple eigenvalue may have further copies";
}

/// What rows that state known values do to eigenvalues.
std::string penalty_text(const EigenReport& r) {
  if (r.penalty_rows == 0) return {};
  return fmt::format(
      "{} with a diagonal up to {:.2g} times all else: each makes an eigenvalue of that size, which means "
      "nothing, and small ones drown in its rounding errors. Write the matrix without these rows and columns "
      "(FreeFEM: tgv = -2 makes them rows and columns of the identity)",
      r.penalty_rows == 1 ? "1 row" : human_count(r.penalty_rows) + " rows", r.penalty_ratio);
}

}  // namespace

std::string to_text(const EigenReport& r) {
  Table t;
  write_setup(t, r);
  if (is_pair(r)) write_pair_method(t, r);
  else write_method(t, r);
  write_phases(t, r.phases);
  if (is_pair(r)) write_pair_times(t, r);
  else write_iteration(t, r);
  t.row("memory a rank", fmt::format("{} for matrix, method and vectors; {} peak of the process",
                                     min_mean_max(r.device_bytes, human_bytes), human_bytes(r.host_peak_bytes.max)));
  t.section("Result");
  t.row("iterations", human_count(r.result.iterations) + (is_pair(r) ? "" : " products") +
                          (r.result.restarts == 0 ? "" : fmt::format(", {} restarts", human_count(r.result.restarts))));
  if (is_pair(r)) {
    write_pairs(t, r);
    return t.text();
  }
  t.row("copies", confirmed_text(r));
  t.row("penalty rows", penalty_text(r));
  if (r.result.interrupted) t.row("interrupted", "the run was told to end; values are as far as they came");
  if (!r.output.empty()) t.row("written", r.output);
  t.line("                 eigenvalue  |Ax - value x|  relative  converged");
  for (const Eigenpair& pair : r.result.pairs)
    t.line(fmt::format("  {:>25.16g}  {:>14.3e}  {:>8.1e}  {}", pair.value, pair.residual,
                       r.result.norm > 0 ? pair.residual / r.result.norm : 0, pair.converged ? "yes" : "no"));
  return t.text();
}

std::string to_json(const EigenReport& r) {
  const bool lanczos = r.method == EigenMethod::lanczos;
  ordered_json pairs = ordered_json::array(), of_pair;
  if (is_pair(r)) of_pair = json_of_pair(r);
  else
    for (const Eigenpair& pair : r.result.pairs)
      pairs.push_back({{"value", number(pair.value)},
                       {"residual", number(pair.residual)},
                       {"relative_residual", number(r.result.norm > 0 ? pair.residual / r.result.norm : 0)},
                       {"converged", pair.converged}});
  ordered_json method{{"method", name(r.method)},
                      {"which", lanczos ? name(r.settings.which) : "magnitude"},
                      {"count", r.settings.count},
                      {"tolerance", r.settings.tolerance},
                      {"max_iterations", r.settings.max_iterations},
                      {"seed", r.settings.seed}};
  if (lanczos) method["basis"] = r.settings.basis;
  ordered_json j{{"matrix", json_of_matrix(r)},
                 {"eigen", is_pair(r) ? of_pair["eigen"] : method},
                 {"converged", r.result.converged()},
                 {"interrupted", r.result.interrupted},
                 {"iterations", r.result.iterations},
                 {"restarts", r.result.restarts},
                 {"confirmed", r.result.confirmed},
                 {"norm", number(r.result.norm)},
                 {"pairs", is_pair(r) ? of_pair["pairs"] : pairs}};
  if (is_pair(r)) j["pair"] = of_pair["pair"];
  j["penalty_rows"] = {{"count", r.penalty_rows}, {"largest_ratio", number(r.penalty_ratio)}};
  add_json_of_run(r, r.result.seconds, j);
  return j.dump(2) + "\n";
}

}  // namespace shardmat
