// What a scaling study keeps of the performance model, and what the model says of a matrix on many ranks.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "partition/row_source.h"
#include "runtime/performance_model.h"

namespace shardmat::tools {

nlohmann::ordered_json to_json(const PerformanceModel& model);
/// Throws nlohmann::json::exception if something is missing.
PerformanceModel model_from_json(const nlohmann::ordered_json& json);

/// A matrix on so many ranks.
struct RanksForecast {
  int ranks = 1;
  PartitionQuality quality;
  Forecast forecast;
};

/// For each number of ranks; reads the matrix once.
std::vector<RanksForecast> forecast_ranks(const PerformanceModel& model, const RowSource& matrix, const std::string& method,
                                          std::span<const int> ranks);

}  // namespace shardmat::tools
