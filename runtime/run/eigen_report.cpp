#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "kernels/base/text.h"
#include "runtime/run/eigen.h"
#include "runtime/run/report_parts.h"

namespace shardmat {
namespace {

using namespace reporting;
using nlohmann::ordered_json;

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

void write_times(Table& t, const EigenReport& r) {
  const auto share = [&](double seconds) {
    return fmt::format("{} ({:.0f} %)", human_seconds(seconds), 100 * seconds / r.seconds_an_iteration);
  };
  t.section("An iteration, on average");
  t.row("time", human_seconds(r.seconds_an_iteration));
  t.row("  product", share(r.product_seconds));
  if (r.ranks.size() > 1) t.row("  exchange", share(r.exchange_seconds));
  const double rest = r.seconds_an_iteration - r.product_seconds - r.exchange_seconds;
  if (rest > 0) t.row("  the rest", share(rest) + ": vectors, sums");
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
  write_method(t, r);
  write_phases(t, r.phases);
  write_times(t, r);
  t.row("memory a rank", fmt::format("{} for matrix, method and vectors; {} peak of the process",
                                     min_mean_max(r.device_bytes, human_bytes), human_bytes(r.host_peak_bytes.max)));
  t.section("Result");
  t.row("iterations", human_count(r.result.iterations) + " products" +
                          (r.result.restarts == 0 ? "" : fmt::format(", {} restarts", human_count(r.result.restarts))));
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
  ordered_json pairs = ordered_json::array();
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
                 {"eigen", method},
                 {"converged", r.result.converged()},
                 {"interrupted", r.result.interrupted},
                 {"iterations", r.result.iterations},
                 {"restarts", r.result.restarts},
                 {"confirmed", r.result.confirmed},
                 {"norm", number(r.result.norm)},
                 {"pairs", pairs}};
  j["penalty_rows"] = {{"count", r.penalty_rows}, {"largest_ratio", number(r.penalty_ratio)}};
  add_json_of_run(r, r.result.seconds, j);
  return j.dump(2) + "\n";
}

}  // namespace shardmat
