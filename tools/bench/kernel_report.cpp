#include "tools/bench/kernel_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "kernels/base/text.h"

namespace shardmat::tools {
namespace {

using nlohmann::ordered_json;

template <class Accept>
const KernelResult* fastest(const KernelCase& one, const Accept& accept) {
  const KernelResult* best = nullptr;
  for (const KernelResult& r : one.results)
    if (r.measured() && r.right() && accept(r) && (best == nullptr || r.timing.median < best->timing.median)) best = &r;
  return best;
}

/// Time of the yardstick over the time of `result`; 0 if there is none of one of them.
double speed_up(const KernelResult* yardstick, const KernelResult* result) {
  return yardstick == nullptr || result == nullptr ? 0 : yardstick->timing.median / result->timing.median;
}

double bytes_per_nonzero(const KernelResult& r, const KernelCase& one) {
  return one.rows.nnz == 0 ? 0 : static_cast<double>(r.format_bytes) / static_cast<double>(one.rows.nnz);
}

double rate(const KernelResult& r) { return static_cast<double>(r.moved_bytes) / r.timing.median; }

/// A figure, or a dash where there is none.
std::string figure(double value, int digits, const char* unit = "") {
  return value > 0 ? fmt::format("{:.{}f}{}", value, digits, unit) : "–";
}

std::string share_of_copy(const KernelResult& r, const Machine& machine) {
  if (machine.copy_bandwidth <= 0) return "–";
  return rate(r) > machine.copy_bandwidth ? "caches" : fmt::format("{:.0f} %", 100 * rate(r) / machine.copy_bandwidth);
}

std::string label(const KernelResult& r) { return r.policy.empty() ? r.kernel : r.kernel + " " + r.policy; }

std::string_view yardstick_name(Backend backend) { return backend == Backend::cuda ? "best cuSPARSE" : "best CSR kernel"; }

/// Geometric mean of the figures above 0; 0 without any.
double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  int count = 0;
  for (const double value : values)
    if (value > 0) sum += std::log(value), ++count;
  return count == 0 ? 0 : std::exp(sum / count);
}

struct Ratios {
  std::vector<double> best, chosen;
};
Ratios ratios_of(const KernelReport& report) {
  Ratios ratios;
  for (const KernelCase& one : report.cases) {
    const KernelResult* yardstick = one.yardstick(report.machine.device.backend);
    ratios.best.push_back(speed_up(yardstick, one.best_own()));
    ratios.chosen.push_back(speed_up(yardstick, one.chosen ? &*one.chosen : nullptr));
  }
  return ratios;
}

/// How many medians are above twice the minimum, and of how many.
std::pair<int, int> count_unsteady(const KernelReport& report) {
  int unsteady = 0, measured = 0;
  for (const KernelCase& one : report.cases)
    for (const KernelResult& r : one.results)
      if (r.measured()) ++measured, unsteady += r.timing.median > 2 * r.timing.min;
  return {unsteady, measured};
}

std::string result_line(const KernelResult& r, const KernelCase& one, const Machine& machine, std::size_t width) {
  const double conversion = r.convert_seconds / r.timing.median;
  std::string line = fmt::format("  {:<{}} {:>10.2f} {:>7.2f} {:>8.1f} {:>6} {:>7} {:>10}{}\n", label(r), width,
                                 1e6 * r.timing.median, bytes_per_nonzero(r, one), 1e-9 * rate(r), share_of_copy(r, machine),
                                 figure(speed_up(one.yardstick(machine.device.backend), &r), 2),
                                 figure(conversion, conversion < 10 ? 1 : 0), r.right() ? "" : "  WRONG");
  if (!r.right())
    line += fmt::format("    {} wrong rows; row {}: error {:.2g}, allowed {:.2g}\n", human_count(r.check.wrong_rows),
                        r.check.worst_row, r.check.error, r.check.bound);
  return line;
}

}  // namespace

bool is_vendor_kernel(std::string_view kernel) { return kernel.ends_with("_cusparse"); }

bool is_yardstick(std::string_view kernel, std::string_view format, Backend backend) {
  return backend == Backend::cuda ? is_vendor_kernel(kernel) : format == "csr";
}

const KernelResult* KernelCase::yardstick(Backend backend) const {
  return fastest(*this, [&](const KernelResult& r) { return is_yardstick(r.kernel, r.format, backend); });
}

const KernelResult* KernelCase::best_own() const {
  return fastest(*this, [](const KernelResult& r) { return !is_vendor_kernel(r.kernel); });
}

std::string header_text(const KernelReport& report) {
  std::string text = report.machine.text();
  text += fmt::format(
      "Medians of {} products, caches {} between them; every result {}.\n"
      "B/nnz: bytes of the format a nonzero. GB/s: format, touched entries of x and y, once. copy: share of the copy "
      "bandwidth, or caches if it is more than all of it.\n"
      "ratio: time of the {} over this one's, above 1 is faster. conversion: in products; the upload of the CSR does not "
      "count.\n",
      report.repetitions, report.flushed ? "flushed" : "left warm",
      report.verified ? "checked row by row against a sequential f64 product" : "unchecked",
      yardstick_name(report.machine.device.backend));
  for (const std::string& note : report.notes) text += "Note: " + note + ".\n";
  return text;
}

std::string case_text(const KernelCase& one, const Machine& machine) {
  std::string text =
      fmt::format("\n{}{}: {} × {}, {} nonzeros, {} … {} a row (mean {:.1f}), {}\n", one.name,
                  one.name == one.argument ? "" : " " + one.argument, human_count(one.rows.rows), human_count(one.cols),
                  human_count(one.rows.nnz), one.rows.min_row, one.rows.max_row, one.rows.mean_row, name(one.type));
  std::vector<const KernelResult*> measured;
  std::map<std::string, std::vector<std::string>> refused;  // by reason, so that it is said once
  std::size_t width = 28;
  for (const KernelResult& r : one.results) {
    if (r.measured()) {
      measured.push_back(&r);
      width = std::max(width, label(r).size());
    } else {
      refused[r.refused].push_back(label(r));
    }
  }
  std::stable_sort(measured.begin(), measured.end(),
                   [](const KernelResult* a, const KernelResult* b) { return a->timing.median < b->timing.median; });
  text += fmt::format("  {:<{}} {:>10} {:>7} {:>8} {:>6} {:>7} {:>10}\n", "kernel", width, "µs", "B/nnz", "GB/s", "copy",
                      "ratio", "conversion");
  for (const KernelResult* r : measured) text += result_line(*r, one, machine, width);
  for (const auto& [why, kernels] : refused) text += fmt::format("  not measured: {}: {}\n", fmt::join(kernels, "; "), why);
  return text;
}

std::string summary_text(const KernelReport& report) {
  const Backend backend = report.machine.device.backend;
  std::size_t width = 14;
  for (const KernelCase& one : report.cases) width = std::max(width, one.name.size());
  const auto column = [](const KernelResult* r) {
    return r == nullptr ? std::string("–") : fmt::format("{:.2f} µs {}", 1e6 * r->timing.median, label(*r));
  };
  std::string text = "\nSummary; ratios over the " + std::string(yardstick_name(backend)) + "\n";
  const Ratios ratios = ratios_of(report);
  for (std::size_t i = 0; i < report.cases.size(); ++i) {
    const KernelCase& one = report.cases[i];
    text += fmt::format("  {:<{}} {}\n", one.name, width, name(one.type));
    text += fmt::format("    {:<15} {:>6}  {}\n", yardstick_name(backend), "", column(one.yardstick(backend)));
    text += fmt::format("    {:<15} {:>6}  {}\n", "best own", figure(ratios.best[i], 2), column(one.best_own()));
    if (one.chosen)
      text += fmt::format("    {:<15} {:>6}  {} ({})\n", "auto", figure(ratios.chosen[i], 2), column(&*one.chosen),
                          one.chosen_why);
  }
  text += fmt::format("  geometric mean of {}: best own {}, auto {}\n", report.cases.size(),
                      figure(geometric_mean(ratios.best), 3), figure(geometric_mean(ratios.chosen), 3));
  if (const auto [unsteady, measured] = count_unsteady(report); unsteady > 0)
    text += fmt::format("  {} of {} times are unsteady (median above twice the minimum): does the machine do other work?\n",
                        unsteady, measured);
  if (const std::int64_t wrong = count_wrong(report)) text += fmt::format("  {} WRONG results, see above\n", wrong);
  return text;
}

namespace {

ordered_json json_of(const KernelResult& r, const KernelCase& one, const Machine& machine) {
  ordered_json json{{"kernel", r.kernel}, {"format", r.format}, {"policy", r.policy}};
  if (!r.measured()) {
    json["refused"] = r.refused;
    return json;
  }
  json.update({{"median_s", r.timing.median},
               {"min_s", r.timing.min},
               {"max_s", r.timing.max},
               {"repetitions", r.timing.repetitions},
               {"format_bytes", r.format_bytes},
               {"bytes_per_nonzero", bytes_per_nonzero(r, one)},
               {"moved_bytes", r.moved_bytes},
               {"bytes_per_s", rate(r)},
               {"share_of_copy", machine.copy_bandwidth > 0 ? ordered_json(rate(r) / machine.copy_bandwidth) : nullptr},
               {"convert_s", r.convert_seconds},
               {"wrong_rows", r.check.wrong_rows}});
  const double ratio = speed_up(one.yardstick(machine.device.backend), &r);
  json["ratio"] = ratio > 0 ? ordered_json(ratio) : nullptr;
  return json;
}

ordered_json json_of(const KernelCase& one, const Machine& machine) {
  const auto or_null = [&](const KernelResult* r) {
    return r == nullptr ? ordered_json(nullptr) : json_of(*r, one, machine);
  };
  ordered_json results = ordered_json::array();
  for (const KernelResult& r : one.results) results.push_back(json_of(r, one, machine));
  ordered_json json{{"matrix",
                     {{"name", one.name},
                      {"argument", one.argument},
                      {"rows", one.rows.rows},
                      {"cols", one.cols},
                      {"nnz", one.rows.nnz},
                      {"x_entries", one.x_entries},
                      {"row_lengths",
                       {{"min", one.rows.min_row},
                        {"mean", one.rows.mean_row},
                        {"max", one.rows.max_row},
                        {"stddev", one.rows.stddev_row}}}}},
                    {"type", name(one.type)},
                    {"results", results},
                    {"yardstick", or_null(one.yardstick(machine.device.backend))},
                    {"best_own", or_null(one.best_own())},
                    {"auto", or_null(one.chosen ? &*one.chosen : nullptr)}};
  if (one.chosen) json["auto"]["why"] = one.chosen_why;
  return json;
}

}  // namespace

ordered_json to_json(const KernelReport& report) {
  const Ratios ratios = ratios_of(report);
  const auto mean = [](const std::vector<double>& values) {
    const double result = geometric_mean(values);
    return result > 0 ? ordered_json(result) : ordered_json(nullptr);
  };
  ordered_json cases = ordered_json::array();
  for (const KernelCase& one : report.cases) cases.push_back(json_of(one, report.machine));
  return {{"machine", report.machine.json()},
          {"repetitions", report.repetitions},
          {"caches", report.flushed ? "flushed" : "warm"},
          {"verified", report.verified},
          {"yardstick", yardstick_name(report.machine.device.backend)},
          {"notes", report.notes},
          {"cases", cases},
          {"geometric_mean_ratio", {{"best_own", mean(ratios.best)}, {"auto", mean(ratios.chosen)}}}};
}

std::int64_t count_wrong(const KernelReport& report) {
  std::int64_t wrong = 0;
  for (const KernelCase& one : report.cases) {
    for (const KernelResult& r : one.results) wrong += !r.right();
    wrong += one.chosen && !one.chosen->right();
  }
  return wrong;
}

}  // namespace shardmat::tools
