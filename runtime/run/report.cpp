#include "runtime/run/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "kernels/base/text.h"
#include "runtime/run/report_parts.h"

namespace shardmat {

namespace {

using namespace reporting;

void write_iterations(Table& t, const MultiplyReport& r) {
  const std::string what = r.mode == "power" ? "power step" : r.mode == "dots" ? "two-dot step" : "product";
  t.section(fmt::format("{} {}{} (slowest rank{})   min      median         max", human_count(r.iteration.iterations), what,
                        r.iteration.iterations == 1 ? "" : "s",
                        r.iteration.together > 1 ? fmt::format(", means of {}", r.iteration.together) : ""));
  t.line(times_line("iteration", r.iteration));
  t.line(times_line("  local product", r.local));
  if (r.exchange_times.iterations > 0) t.line(times_line("  exchange", r.exchange_times));
  if (r.transpose) {
    t.line(times_line("with the matrix", r.transpose->product_of_matrix));
    t.row("transpose", fmt::format("takes {:.2f} times as long as the product with the matrix",
                                   r.iteration.median / r.transpose->product_of_matrix.median));
  }
  t.row("dot products", r.sums.empty() ? "" : "summed over the ranks by " + r.sums);
  t.row("speed", fmt::format("{:.4g} GFLOP/s", r.gflops));
  if (r.ranks.size() > 1) t.row("local product", min_mean_max(r.local.of_ranks, human_seconds) + " over ranks");
  if (r.copy_bandwidth.mean > 0) t.row("local product", bandwidth_text(r.bandwidth.mean, r.copy_bandwidth.mean));
}

void write_times(Table& t, const MultiplyReport& r) {
  write_phases(t, r.phases);
  if (r.iteration.iterations > 0) write_iterations(t, r);
  const std::string held = min_mean_max(r.device_bytes, human_bytes), peak = human_bytes(r.host_peak_bytes.max);
  t.row("memory a rank", r.backend == "cuda" ? fmt::format("{} on the device, {} peak on the host", held, peak)
                                             : fmt::format("{} for matrix, x and y; {} peak of the process", held, peak));
}

}  // namespace

std::string to_text(const MultiplyReport& r) {
  Table t;
  write_setup(t, r);
  if (r.transpose)
    t.row("transpose",
          r.transpose->kernel + (r.transpose->map_bytes.max > 0
                                     ? fmt::format(" ({} a rank)", min_mean_max(r.transpose->map_bytes, human_bytes))
                                     : ""));
  write_times(t, r);
  if (r.eigenvalue || r.xy || r.verification || !r.output.empty()) t.section("Result");
  if (r.xy)
    t.row("dot products",
          fmt::format("xᵀy = {:.12g}, yᵀy = {:.12g}{}", *r.xy, r.yy.value_or(0),
                      std::isfinite(*r.xy) && std::isfinite(r.yy.value_or(0)) ? "" : " (sums left the range of f64)"));
  if (r.eigenvalue)
    t.row("eigenvalue", fmt::format("{:.12g} (relative residual {:.2g})", *r.eigenvalue, r.residual.value_or(0)));
  if (r.verification) t.row("verification", r.verification->text());
  if (!r.output.empty()) t.row("written", r.output);
  return t.text();
}

namespace {

using nlohmann::ordered_json;

ordered_json json_of_verification(const VerifyResult& v) {
  return {{"passed", v.passed},
          {"mode", v.mode == VerifyMode::full ? "full" : "sampled"},
          {"rows_checked", v.rows_checked},
          {"wrong_rows", v.wrong_rows},
          {"column_sums_passed", v.column_sums_passed},
          {"worst_row", v.worst_row},
          {"worst_error", number(v.worst_error)},
          {"worst_bound", number(v.worst_bound)},
          {"worst_computed", number(v.worst_computed)},
          {"worst_expected", number(v.worst_expected)}};
}

}  // namespace

std::string to_json(const MultiplyReport& r) {
  ordered_json ranks = json_of_ranks(r);
  for (std::size_t i = 0; i < r.local.of_ranks.each.size(); ++i) ranks[i]["product_s"] = r.local.of_ranks.each[i];
  ordered_json j{{"matrix", json_of_matrix(r)},
                 {"operation",
                  {{"mode", r.mode},
                   {"right_hand_sides", r.right_hand_sides},
                   {"alpha", r.alpha},
                   {"beta", r.beta},
                   {"x", r.x},
                   {"y0", r.y0}}},
                 {"partition", json_of_partition(r)},
                 {"backend", {{"name", r.backend}, {"why", r.backend_why}}},
                 {"ranks", ranks},
                 {"threads_per_rank", r.threads_per_rank},
                 {"kernel", json_of_kernel(r)},
                 {"exchange", json_of_exchange(r)},
                 {"phases_s", json_of_phases(r.phases)},
                 {"iteration", json(r.iteration)},
                 {"local_product", json(r.local)},
                 {"exchange_alone", json(r.exchange_times)},
                 {"gflops", r.gflops},
                 {"bandwidth_bytes_per_s", json(r.bandwidth)},
                 {"copy_bandwidth_bytes_per_s", json(r.copy_bandwidth)},
                 {"device_bytes", json(r.device_bytes)},
                 {"host_peak_bytes", json(r.host_peak_bytes)}};
  j["verification"] = r.verification ? json_of_verification(*r.verification) : ordered_json(nullptr);
  if (!r.sums.empty()) j["sums"] = r.sums;
  if (r.xy) j["dots"] = {{"xy", number(*r.xy)}, {"yy", number(r.yy.value_or(0))}};
  if (r.eigenvalue)
    j["eigenvalue"] = {{"estimate", number(*r.eigenvalue)}, {"relative_residual", number(r.residual.value_or(0))}};
  if (r.transpose)
    j["transpose"] = {{"kernel", r.transpose->kernel},
                      {"map_bytes", json(r.transpose->map_bytes)},
                      {"product_of_matrix", json(r.transpose->product_of_matrix)}};
  if (!r.output.empty()) j["output"] = r.output;
  return j.dump(2) + "\n";
}

}  // namespace shardmat
