#include "tools/forecast.h"

#include "tools/progress_bar.h"

namespace shardmat::tools {

using nlohmann::ordered_json;

ordered_json to_json(const PerformanceModel& model) {
  ordered_json exchanges = ordered_json::array();
  for (const ExchangeCost& cost : model.exchanges)
    exchanges.push_back({{"name", cost.exchange}, {"latency_s", cost.latency}, {"s_per_byte", cost.seconds_per_byte}});
  return {{"product", {{"latency_s", model.product.latency}, {"s_per_nnz", model.product.seconds_per_nnz}}},
          {"entry_bytes", model.entry_bytes},
          {"split_latency_s", model.split_latency},
          {"measured_ranks", model.measured_ranks},
          {"exchanges", exchanges}};
}

PerformanceModel model_from_json(const ordered_json& json) {
  PerformanceModel model;
  model.product.latency = json.at("product").at("latency_s");
  model.product.seconds_per_nnz = json.at("product").at("s_per_nnz");
  model.entry_bytes = json.at("entry_bytes");
  model.split_latency = json.at("split_latency_s");
  model.measured_ranks = json.at("measured_ranks");
  for (const ordered_json& cost : json.at("exchanges"))
    model.exchanges.push_back({cost.at("name"), cost.at("latency_s"), cost.at("s_per_byte")});
  return model;
}

std::vector<RanksForecast> forecast_ranks(const PerformanceModel& model, const RowSource& matrix, const std::string& method,
                                          std::span<const int> ranks) {
  const Progress progress = make_progress_bar();
  const HostVector<std::int64_t> row_ptr = read_row_pointers(matrix, progress);
  std::vector<QualityMeter> meters;
  for (const int parts : ranks) meters.emplace_back(make_partition(method, row_ptr, parts), matrix.cols());
  for_each_slice(matrix, 0, matrix.rows(), [&](std::int64_t first_row, const CsrView& rows) {
    for (QualityMeter& meter : meters) meter.add(rows);
    report(progress, "cutting", first_row + rows.rows, matrix.rows());
  });
  std::vector<RanksForecast> found;
  for (std::size_t i = 0; i < meters.size(); ++i) {
    const PartitionQuality quality = meters[i].result();
    found.push_back({ranks[i], quality, forecast(model, quality, ranks[i])});
  }
  return found;
}

}  // namespace shardmat::tools
