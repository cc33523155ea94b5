#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "kernels/base/text.h"
#include "runtime/run/report_parts.h"
#include "runtime/run/several.h"

namespace shardmat {
namespace {

using namespace reporting;
using nlohmann::ordered_json;

std::string result_text(const SeveralReport& r, const SeveralItem& item) {
  std::string text;
  if (item.verification) text = item.verification->passed ? "passed" : "FAILED";
  if (r.mode == "power" && r.iteration.iterations > 0)
    text += fmt::format("{}λ = {:.10g}", text.empty() ? "" : ", ", item.estimate.eigenvalue);
  if (r.mode == "dots" && r.iteration.iterations > 0)
    text += fmt::format("{}xᵀy = {:.6g}, yᵀy = {:.6g}", text.empty() ? "" : ", ", item.estimate.xy, item.estimate.yy);
  return text;
}

}  // namespace

std::string to_text(const SeveralReport& r) {
  std::string text =
      fmt::format("{} matri{} in one run, {}{}, on {} rank{} ({}, {})\n", r.items.size(), r.items.size() == 1 ? "x" : "ces",
                  r.type, r.right_hand_sides > 1 ? fmt::format(", {} right-hand sides", r.right_hand_sides) : "",
                  r.ranks.size(), r.ranks.size() == 1 ? "" : "s", r.backend, r.ranks[0].device);
  text += fmt::format("  placed         {} ({})\n",
                      r.placement == "whole" ? "each matrix whole on one rank" : "each over all ranks", r.why);
  text += fmt::format("  nnz a rank     {} … {}\n  memory a rank  {} at most\n\n", human_count(std::llround(r.rank_nnz.min)),
                      human_count(std::llround(r.rank_nnz.max)), human_bytes(r.device_bytes.max));
  text += fmt::format("  {:>4}  {:<36} {:>12} {:>14}  {:<10} {}\n", "rank", "matrix", "rows", "nonzeros", "exchange",
                      "kernel of the first rank");
  for (const SeveralItem& item : r.items) {
    text += fmt::format("  {:>4}  {:<36} {:>12} {:>14}  {:<10} {}\n", item.rank < 0 ? "all" : std::to_string(item.rank),
                        item.matrix, human_count(item.rows), human_count(item.nnz), item.exchange, item.kernel);
    if (item.column_block < r.right_hand_sides) text += fmt::format("        {} columns at a time\n", item.column_block);
    if (const std::string result = result_text(r, item); !result.empty()) text += fmt::format("        {}\n", result);
  }
  if (r.iteration.iterations == 0) return text;
  text += fmt::format("\n{} iterations of all (slowest rank)   min      median         max\n",
                      human_count(r.iteration.iterations));
  for (const auto& [label, times] :
       {std::pair("iteration", r.iteration), {"  local products", r.local}, {"  exchanges", r.exchange}})
    text += times_line(label, times) + "\n";
  text += fmt::format("  speed          {:.4g} GFLOP/s{}\n", r.gflops, r.graph ? ", replayed from a CUDA graph" : "");
  return text;
}

std::string to_json(const SeveralReport& r) {
  ordered_json items = ordered_json::array();
  for (const SeveralItem& item : r.items) {
    ordered_json one{
        {"matrix", item.matrix}, {"rows", item.rows},     {"cols", item.cols},         {"nnz", item.nnz},
        {"rank", item.rank},     {"kernel", item.kernel}, {"exchange", item.exchange}, {"column_block", item.column_block}};
    if (item.verification)
      one["verification"] = {{"passed", item.verification->passed}, {"rows_checked", item.verification->rows_checked}};
    if (r.mode == "power") one["eigenvalue"] = item.estimate.eigenvalue;
    if (r.mode == "dots") one["dots"] = {{"xy", item.estimate.xy}, {"yy", item.estimate.yy}};
    items.push_back(std::move(one));
  }
  return ordered_json{{"batch", items},
                      {"placement", {{"name", r.placement}, {"why", r.why}}},
                      {"type", r.type},
                      {"mode", r.mode},
                      {"right_hand_sides", r.right_hand_sides},
                      {"backend", r.backend},
                      {"ranks", json(r.ranks)},
                      {"nnz_of_ranks", json(r.rank_nnz)},
                      {"device_bytes", json(r.device_bytes)},
                      {"predicted", {{"split_s", r.predicted_split}, {"whole_s", r.predicted_whole}}},
                      {"iteration", json(r.iteration)},
                      {"local", json(r.local)},
                      {"exchange", json(r.exchange)},
                      {"graph", r.graph},
                      {"gflops", r.gflops}}
             .dump(2) +
         "\n";
}

}  // namespace shardmat
