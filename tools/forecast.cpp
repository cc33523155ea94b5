#include "tools/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "kernels/base/text.h"
#include "tools/growing_matrix.h"
#include "tools/progress_bar.h"

namespace shardmat::tools {

using nlohmann::ordered_json;

namespace {

/// Why a study has no models, if it says so.
std::string reasons(const ordered_json& study) {
  std::string text;
  for (const ordered_json& why : study.value("no_forecasts", ordered_json::array()))
    text += (text.empty() ? ". It has no forecast for " : "; ") + why.get<std::string>();
  return text;
}

}  // namespace

ordered_json to_json(const PerformanceModel& model) {
  ordered_json exchanges = ordered_json::array();
  for (const ExchangeCost& cost : model.exchanges)
    exchanges.push_back({{"ranks", cost.ranks},
                         {"name", cost.exchange},
                         {"latency_s", cost.latency},
                         {"s_per_byte", cost.seconds_per_byte},
                         {"few_bytes", cost.few_bytes},
                         {"s_per_byte_of_few", cost.seconds_per_byte_of_few}});
  ordered_json product = ordered_json::array();
  for (const auto& [nnz, seconds] : model.product.points()) product.push_back({{"nnz", nnz}, {"seconds", seconds}});
  return {{"product", product},
          {"entry_bytes", model.entry_bytes},
          {"overlaps", model.overlaps},
          {"overlaps_peer", model.overlaps_peer},
          {"split_latency_s", model.split_latency},
          {"measured_ranks", model.measured_ranks},
          {"exchanges", exchanges}};
}

PerformanceModel model_from_json(const ordered_json& json) {
  PerformanceModel model;
  std::vector<ProductCost::Point> product;
  for (const ordered_json& point : json.at("product")) product.push_back({point.at("nnz"), point.at("seconds")});
  model.product = ProductCost(std::move(product));
  model.entry_bytes = json.at("entry_bytes");
  model.overlaps = json.at("overlaps");
  model.overlaps_peer = json.value("overlaps_peer", model.overlaps);
  model.split_latency = json.at("split_latency_s");
  model.measured_ranks = json.at("measured_ranks");
  for (const ordered_json& cost : json.at("exchanges"))
    model.exchanges.push_back({cost.value("ranks", model.measured_ranks), cost.at("name"), cost.at("latency_s"),
                               cost.at("s_per_byte"), cost.value("few_bytes", 0.0), cost.value("s_per_byte_of_few", 0.0)});
  return model;
}

std::string describe(const PerformanceModel& model) {
  std::string text;
  for (const auto& [nnz, seconds] : model.product.points())
    text += fmt::format("{}{} for {}", text.empty() ? "product: " : ", ", human_seconds(seconds), human_count(nnz));
  text += text.empty() ? "product: no nonzeros" : " nonzeros";
  int ranks = 1;
  for (const ExchangeCost& cost : model.exchanges)
    text += fmt::format("{} {}: {} + {}", cost.ranks != ranks ? fmt::format("\n  {} ranks:", ranks = cost.ranks) : ";",
                        cost.exchange, human_seconds(cost.latency),
                        cost.seconds_per_byte > 0 ? human_bytes(1 / cost.seconds_per_byte) + "/s" : "0 a byte");
  return text;
}

std::vector<StudiedMatrix> read_study(const std::string& path) {
  std::ifstream file(path);
  if (!file || std::filesystem::is_directory(path))
    throw Error(ErrorKind::input, fmt::format("cannot read {}; write it with shardmat bench scaling --json", path));
  const ordered_json report = ordered_json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (report.is_discarded())
    throw Error(ErrorKind::input,
                fmt::format("{} is no JSON, or was cut off; write it with shardmat bench scaling --json", path));
  try {
    std::vector<StudiedMatrix> found;
    for (const ordered_json& one : report.at("models")) {
      if (grows(one.at("matrix"))) continue;  // it is another on each number of ranks
      StudiedMatrix studied{one.at("matrix"), model_from_json(one), {}};
      for (const ordered_json& c : report.at("cases")) {
        if (c.at("matrix") != studied.matrix || !c.contains("report")) continue;
        const ordered_json& measured = c.at("report");
        const bool in_blocks = measured.at("exchange").value("column_block_why", "") != "";
        if (in_blocks) continue;  // of columns, which the model does not know
        const double seconds = measured.at("iteration").at("median_s");
        const auto same = std::find_if(studied.seconds.begin(), studied.seconds.end(),
                                       [&](const auto& s) { return s.first == c.at("ranks"); });
        if (same == studied.seconds.end()) studied.seconds.emplace_back(c.at("ranks"), seconds);
        else same->second = std::min(same->second, seconds);
      }
      found.push_back(std::move(studied));
    }
    if (found.empty())
      throw Error(ErrorKind::input,
                  fmt::format("{}: no matrix of it was measured on one rank and stays the same; run shardmat bench scaling "
                              "with one rank among --ranks{}",
                              path, reasons(report)));
    return found;
  } catch (const nlohmann::json::exception& e) {
    throw Error(ErrorKind::input,
                fmt::format("{} is not what this version's shardmat bench scaling --json writes, with one rank among its "
                            "cases; run it again ({})",
                            path, e.what()));
  }
}

std::vector<RanksForecast> forecast_ranks(const PerformanceModel& model, const RowSource& matrix,
                                          std::span<const std::string> methods, std::span<const int> ranks) {
  const Progress progress = make_progress_bar();
  require_host_memory(8 * (matrix.rows() + 1) + std::ssize(methods) * std::ssize(ranks) * (matrix.cols() / 8),
                      "cutting the matrix for each number of ranks");
  for (const int count : ranks) require_links(model, count);
  const HostVector<std::int64_t> row_ptr = read_row_pointers(matrix, progress);
  std::vector<RanksForecast> found;
  std::vector<QualityMeter> meters;
  for (const std::string& method : methods)
    for (const int parts : ranks) {
      found.push_back({method, parts, {}, {}});
      meters.emplace_back(make_partition(method, row_ptr, parts), matrix.cols());
    }
  for_each_slice(matrix, 0, matrix.rows(), [&](std::int64_t first_row, const CsrView& rows) {
    parallel_tasks(std::ssize(meters), [&](std::int64_t i) { meters[static_cast<std::size_t>(i)].add(rows); });
    report(progress, "cutting", first_row + rows.rows, matrix.rows());
  });
  for (std::size_t i = 0; i < meters.size(); ++i) {
    found[i].quality = meters[i].result();
    found[i].forecast = forecast(model, found[i].quality, found[i].ranks);
  }
  return found;
}

}  // namespace shardmat::tools
