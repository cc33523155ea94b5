#include <fmt/format.h>

#include "kernels/base/text.h"
#include "runtime/batched/batched_multiply.h"
#include "runtime/run/report_parts.h"

namespace shardmat {
namespace {

using namespace reporting;
using nlohmann::ordered_json;

std::string operation(const BatchedReport& r) {
  std::string product = r.transpose ? "Aᵀ·X" : "A·X";
  if (r.alpha != 1) product = fmt::format("{}·{}", r.alpha, product);
  if (!r.bias.empty()) product += " + bias";
  return r.relu ? fmt::format("max({}, 0)", product) : product;
}

std::string verification_text(const BatchedVerification& v) {
  const std::string worst = v.worst_matrix < 0 ? ""
                                               : fmt::format("; worst matrix {}, row {}: error {:.2g} {} bound {:.2g}",
                                                             v.worst_matrix, v.worst_row, v.worst_error,
                                                             v.worst_error <= v.worst_bound ? "≤" : ">", v.worst_bound);
  return v.passed ? fmt::format("passed ({} rows){}", human_count(v.rows_checked), worst)
                  : fmt::format("FAILED: {} of {} rows are wrong{}", human_count(v.wrong_rows), human_count(v.rows_checked),
                                worst);
}

void write_setup(Table& t, const BatchedReport& r) {
  t.section(fmt::format("Batch {}", r.batch));
  t.row("matrices", fmt::format("{}, {} … {} rows, up to {} columns", human_count(r.count), human_count(r.least_rows),
                                human_count(r.most_rows), human_count(r.most_cols)));
  t.row("together", fmt::format("{} × {}, {}, {} in {}", human_count(r.rows), human_count(r.cols),
                                human_count(r.nnz, "nonzero"), r.type, r.format));
  t.row("product", fmt::format("{}, X with {} ({})", operation(r), human_count(r.columns, "column"), r.x));
  t.section("Ranks");
  for (std::size_t i = 0; i < r.ranks.size(); ++i)
    t.row(fmt::format("rank {}", i), fmt::format("{}  {}  {}", r.ranks[i].host, r.ranks[i].device, r.ranks[i].id));
  t.row("matrices", min_mean_max(r.rank_matrices, count_text) + " a rank");
  t.row("bytes", min_mean_max(r.rank_bytes, human_bytes) + " a rank and product, at least");
  t.section("Choices");
  t.row("backend", fmt::format("{} ({})", r.backend, r.backend_why));
  t.row("kernel", r.kernel.empty() ? "none: there is nothing to multiply"
                                   : fmt::format("{}{}{} ({})", r.kernel, r.policy.empty() ? "" : " ", r.policy, r.why));
  t.row("reproducible", r.reproducible ? "yes, bit for bit" : "no, the kernel adds in varying order");
  if (r.backend == "cuda")
    t.row("descriptor", human_bytes(static_cast<double>(r.descriptor_bytes)) + " to the device for a batch or chunk");
  for (const Measurement& m : r.measurements)
    t.line(fmt::format("  {:>16}  {} {}", human_seconds(m.seconds), m.kernel, m.policy));
}

void write_times(Table& t, const BatchedReport& r) {
  if (r.streaming) {
    t.section(fmt::format("{} chunks through the devices", human_count(r.streaming->chunks)));
    t.row("total", human_seconds(r.streaming->total));
    t.row("reading", human_seconds(r.streaming->read) + ", at the same time");
    t.row(r.backend == "cuda" ? "on the device" : "multiplying",
          human_seconds(r.streaming->product) + " with copies, at the same time");
    t.row("using results", human_seconds(r.streaming->deliver));
    t.row("speed", fmt::format("{:.4g} GFLOP/s, all included", r.gflops));
    if (r.streaming->other_kernels > 0)
      t.row("kernels", fmt::format("{} of the chunks by others, because {} does not take them",
                                   human_count(r.streaming->other_kernels), r.kernel));
    return;
  }
  if (r.product.iterations == 0) return;
  t.section(fmt::format("{} product{} of the batch (slowest rank)   min      median         max",
                        human_count(r.product.iterations), r.product.iterations == 1 ? "" : "s"));
  t.line(times_line("product", r.product));
  t.row("speed", fmt::format("{:.4g} GFLOP/s", r.gflops));
  if (r.copy_bandwidth.mean > 0) t.row("bandwidth", bandwidth_text(r.bandwidth.mean, r.copy_bandwidth.mean));
}

}  // namespace

std::string to_text(const BatchedReport& r) {
  Table t;
  write_setup(t, r);
  write_times(t, r);
  t.section("Result");
  t.row("memory a rank",
        min_mean_max(r.device_bytes, human_bytes) + (r.backend == "cuda" ? " on the device" : " for matrices, X and Y"));
  t.row("loading", r.streaming ? "" : min_mean_max(r.loading, human_seconds));
  if (r.verification) t.row("verification", verification_text(*r.verification));
  t.row("written", r.output);
  return t.text();
}

std::string to_json(const BatchedReport& r) {
  ordered_json j{{"batch",
                  {{"name", r.batch},
                   {"matrices", r.count},
                   {"rows", r.rows},
                   {"cols", r.cols},
                   {"nnz", r.nnz},
                   {"least_rows", r.least_rows},
                   {"most_rows", r.most_rows},
                   {"most_cols", r.most_cols},
                   {"type", r.type},
                   {"format", r.format}}},
                 {"operation",
                  {{"right_hand_sides", r.columns},
                   {"transpose", r.transpose},
                   {"alpha", r.alpha},
                   {"bias", r.bias},
                   {"relu", r.relu},
                   {"x", r.x}}},
                 {"backend", {{"name", r.backend}, {"why", r.backend_why}}},
                 {"ranks", json(r.ranks)},
                 {"matrices_of_ranks", json(r.rank_matrices)},
                 {"bytes_of_ranks", json(r.rank_bytes)},
                 {"kernel",
                  {{"name", r.kernel},
                   {"policy", r.policy},
                   {"why", r.why},
                   {"reproducible", r.reproducible},
                   {"descriptor_bytes", r.descriptor_bytes},
                   {"choosing_s", json(r.choosing)},
                   {"measurements", json(r.measurements)}}},
                 {"loading_s", json(r.loading)},
                 {"product",
                  {{"iterations", r.product.iterations},
                   {"median_s", r.product.median},
                   {"min_s", r.product.min},
                   {"max_s", r.product.max},
                   {"medians_of_ranks_s", json(r.product.of_ranks)}}},
                 {"gflops", r.gflops},
                 {"bandwidth_bytes_per_s", json(r.bandwidth)},
                 {"copy_bandwidth_bytes_per_s", json(r.copy_bandwidth)},
                 {"device_bytes", json(r.device_bytes)}};
  j["streaming"] = nullptr;
  if (r.streaming)
    j["streaming"] = {{"chunks", r.streaming->chunks},     {"total_s", r.streaming->total},
                      {"read_s", r.streaming->read},       {"device_s", r.streaming->product},
                      {"deliver_s", r.streaming->deliver}, {"chunks_by_other_kernels", r.streaming->other_kernels}};
  j["verification"] = nullptr;
  if (const auto& v = r.verification)
    j["verification"] = {{"passed", v->passed},
                         {"rows_checked", v->rows_checked},
                         {"wrong_rows", v->wrong_rows},
                         {"worst_matrix", v->worst_matrix},
                         {"worst_row", v->worst_row},
                         {"worst_error", number(v->worst_error)},
                         {"worst_bound", number(v->worst_bound)}};
  if (!r.output.empty()) j["output"] = r.output;
  return j.dump(2) + "\n";
}

}  // namespace shardmat
