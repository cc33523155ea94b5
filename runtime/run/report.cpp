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

/// What was measured beside what the model expected, both as multiples of the best.
void write_candidates(Table& t, const MultiplyReport& r) {
  const auto expected = [&](const Measurement& m) -> std::string {
    for (const Prediction& p : r.predictions)
      if (p.kernel == m.kernel && p.policy == m.policy && std::isfinite(p.bytes))
        return fmt::format("{:.2f}", p.bytes / r.predictions.front().bytes);
    return "–";
  };
  if (!r.measurements.empty()) {
    t.section("Kernels measured (rank 0)   times the best, predicted");
    for (const Measurement& m : r.measurements)
      t.line(fmt::format("  {:>10} {:>14.2f} {:>10}  {} {}", human_seconds(m.seconds),
                         m.seconds / r.measurements.front().seconds, expected(m), m.kernel, m.policy));
  } else if (!r.predictions.empty()) {
    t.section("Kernels predicted (rank 0), times the best");
    for (const Prediction& p : r.predictions)
      if (std::isfinite(p.bytes))
        t.line(fmt::format("  {:>10.2f}  {} {}", p.bytes / r.predictions.front().bytes, p.kernel, p.policy));
  }
}

void write_setup(Table& t, const MultiplyReport& r) {
  t.section(fmt::format("Matrix {}", r.matrix));
  t.row("shape",
        fmt::format("{} × {}, {} nonzeros, {}", human_count(r.rows), human_count(r.cols), human_count(r.nnz), r.type));
  if (r.right_hand_sides > 1) t.row("X and Y", fmt::format("{} columns, row-major", human_count(r.right_hand_sides)));
  t.row("read by", r.access);
  t.row("parts",
        fmt::format("{} by {} ({}), rows sorted: {}", r.ranks.size(), r.partition_method, r.partition_origin, r.sort));
  t.row("nnz a part", fmt::format("{}, imbalance {:.4f}", min_mean_max(r.part_nnz, count_text), r.imbalance));
  t.row("rows a part", min_mean_max(r.part_rows, count_text));
  t.section("Ranks");
  for (std::size_t i = 0; i < r.ranks.size(); ++i)
    t.row(fmt::format("rank {}", i),
          fmt::format("{}  {}{}{}", r.ranks[i].host, r.ranks[i].device, r.ranks[i].id.empty() ? "" : "  ",
                      r.ranks[i].id.empty() ? fmt::format(" × {} threads", r.threads_per_rank) : r.ranks[i].id));
  t.section("Choices");
  t.row("backend", fmt::format("{} ({})", r.backend, r.backend_why));
  const std::string kernel = r.policy.empty() ? r.kernel : r.kernel + " " + r.policy;
  t.row("kernel", fmt::format("{} ({})", kernel, r.kernel_why));
  if (std::any_of(r.kernel_of_rank.begin(), r.kernel_of_rank.end(), [&](const auto& k) { return k != kernel; }))
    for (std::size_t i = 0; i < r.kernel_of_rank.size(); ++i) t.row(fmt::format("  rank {}", i), r.kernel_of_rank[i]);
  if (r.decision == "measured" || r.decision == "remembered")
    t.row("choosing", fmt::format("{}{}", min_mean_max(r.choosing, human_seconds),
                                  r.choosing_products > 0 ? fmt::format(" = {:.3g} products", r.choosing_products) : ""));
  t.row("exchange", fmt::format("{} ({}{}); {} received a rank", r.exchange,
                                r.column_block_why.empty() ? "" : "of each column block: ", r.exchange_why,
                                min_mean_max(r.exchange_bytes, human_bytes)));
  if (!r.column_block_why.empty())
    t.row("column blocks",
          fmt::format("{} of {} right-hand sides at a time ({})", r.column_block, r.right_hand_sides, r.column_block_why));
  if (r.overlapped.max > 0)
    t.row("overlap", fmt::format("{} of the nonzeros are multiplied while x moves, the others need x of other ranks",
                                 min_mean_max(r.overlapped, percent_text)));
  t.row("reproducible", r.reproducible ? "yes, bit for bit with these kernels, this exchange and number of ranks"
                                       : "no, a kernel adds in varying order");
  if (r.graph) t.row("replay", "iterations replayed from a CUDA graph");
  write_candidates(t, r);
}

void write_iterations(Table& t, const MultiplyReport& r) {
  const std::string what = r.mode == "power" ? "power step" : r.mode == "dots" ? "two-dot step" : "product";
  t.section(fmt::format("{} {}{} (slowest rank{})   min      median         max", human_count(r.iteration.iterations), what,
                        r.iteration.iterations == 1 ? "" : "s",
                        r.iteration.together > 1 ? fmt::format(", means of {}", r.iteration.together) : ""));
  t.line(times_line("iteration", r.iteration));
  t.line(times_line("  local product", r.local));
  t.line(times_line("  exchange", r.exchange_times));
  t.row("dot products", r.sums.empty() ? "" : "summed over the ranks by " + r.sums);
  t.row("speed", fmt::format("{:.4g} GFLOP/s", r.gflops));
  if (r.ranks.size() > 1) t.row("local product", min_mean_max(r.local.of_ranks, human_seconds) + " over ranks");
  if (r.copy_bandwidth.mean > 0) t.row("local product", bandwidth_text(r.bandwidth.mean, r.copy_bandwidth.mean));
}

void write_times(Table& t, const MultiplyReport& r) {
  t.section("Time over ranks           min        mean         max");
  for (const Phase& p : r.phases)
    t.line(fmt::format("  {:<16} {:>11} {:>11} {:>11}", p.name, human_seconds(p.seconds.min), human_seconds(p.seconds.mean),
                       human_seconds(p.seconds.max)));
  if (r.iteration.iterations > 0) write_iterations(t, r);
  const std::string held = min_mean_max(r.device_bytes, human_bytes), peak = human_bytes(r.host_peak_bytes.max);
  t.row("memory a rank", r.backend == "cuda" ? fmt::format("{} on the device, {} peak on the host", held, peak)
                                             : fmt::format("{} for matrix, x and y; {} peak of the process", held, peak));
}

}  // namespace

std::string to_text(const MultiplyReport& r) {
  Table t;
  write_setup(t, r);
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

ordered_json json_of_ranks(const MultiplyReport& r) {
  ordered_json ranks = ordered_json::array();
  for (std::size_t i = 0; i < r.ranks.size(); ++i) {
    ranks.push_back({{"rank", i},
                     {"host", r.ranks[i].host},
                     {"device", r.ranks[i].device},
                     {"id", r.ranks[i].id},
                     {"rows", std::llround(r.part_rows.each[i])},
                     {"nnz", std::llround(r.part_nnz.each[i])},
                     {"overlapped", r.overlapped.each[i]},
                     {"kernel", r.kernel_of_rank[i]}});
    if (!r.local.of_ranks.each.empty()) ranks.back()["product_s"] = r.local.of_ranks.each[i];
  }
  return ranks;
}

ordered_json json_of_kernel(const MultiplyReport& r) {
  ordered_json predictions = ordered_json::array();
  for (const Prediction& p : r.predictions)
    predictions.push_back({{"kernel", p.kernel}, {"policy", p.policy}, {"bytes", number(p.bytes)}});
  return {{"name", r.kernel},
          {"format", r.format},
          {"policy", r.policy},
          {"decision", r.decision},
          {"why", r.kernel_why},
          {"reproducible", r.reproducible},
          {"choosing_s", json(r.choosing)},
          {"choosing_products", r.choosing_products},
          {"predictions", predictions},
          {"measurements", json(r.measurements)}};
}

ordered_json json_of_exchange(const MultiplyReport& r) {
  return {{"name", r.exchange},
          {"why", r.exchange_why},
          {"bytes_received", json(r.exchange_bytes)},
          {"overlapped", json(r.overlapped)},
          {"column_block", r.column_block},
          {"column_block_why", r.column_block_why},
          {"graph", r.graph}};
}

}  // namespace

std::string to_json(const MultiplyReport& r) {
  ordered_json phases = ordered_json::object();
  for (const Phase& p : r.phases) phases[p.name] = json(p.seconds);
  ordered_json j{
      {"matrix",
       {{"name", r.matrix}, {"rows", r.rows}, {"cols", r.cols}, {"nnz", r.nnz}, {"type", r.type}, {"access", r.access}}},
      {"operation",
       {{"mode", r.mode},
        {"right_hand_sides", r.right_hand_sides},
        {"alpha", r.alpha},
        {"beta", r.beta},
        {"x", r.x},
        {"y0", r.y0}}},
      {"partition",
       {{"parts", r.ranks.size()},
        {"method", r.partition_method},
        {"origin", r.partition_origin},
        {"sort", r.sort},
        {"rows", json(r.part_rows)},
        {"nnz", json(r.part_nnz)},
        {"imbalance", r.imbalance}}},
      {"backend", {{"name", r.backend}, {"why", r.backend_why}}},
      {"ranks", json_of_ranks(r)},
      {"threads_per_rank", r.threads_per_rank},
      {"kernel", json_of_kernel(r)},
      {"exchange", json_of_exchange(r)},
      {"phases_s", phases},
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
  if (!r.output.empty()) j["output"] = r.output;
  return j.dump(2) + "\n";
}

}  // namespace shardmat
