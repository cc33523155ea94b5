// What a scaling study keeps of the performance model, and what the model says of a matrix on many ranks.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "partition/source/row_source.h"
#include "runtime/timing/performance_model.h"

namespace shardmat::tools {

nlohmann::ordered_json to_json(const PerformanceModel& model);
/// Throws nlohmann::json::exception if something is missing, Error(input) naming the field if a figure is out of range.
PerformanceModel model_from_json(const nlohmann::ordered_json& json);

/// "product: 5.0 µs for 144,400, 6.3 µs for 1,660,600 nonzeros", and for each number of ranks a line, "  4 ranks: halo: 12.0
/// µs + 150 GB/s; …".
std::string describe(const PerformanceModel& model);

/// The seconds of an iteration with the fastest exchange.
struct MeasuredIteration {
  int ranks = 1, hosts = 1;
  double seconds = 0;
};

/// A matrix of a scaling study: its model, and what was measured.
struct StudiedMatrix {
  std::string matrix;
  PerformanceModel model;
  std::vector<MeasuredIteration> measured;
  std::vector<std::string> doubts;  ///< what the study says against its figures, as "2 ranks, halo: unsteady …"
};

/// The folder in which a study was made; empty if it does not tell. Throws Error(input).
std::string folder_of_study(const std::string& path);

/// What a JSON report of bench scaling says of its matrices, those left out that are others on each number of ranks. Never
/// empty. Throws Error(input).
std::vector<StudiedMatrix> read_study(const std::string& path);

/// A matrix on so many ranks, cut by `method`.
struct RanksForecast {
  std::string method;
  int ranks = 1;
  PartitionQuality quality;
  HostTraffic between;  ///< of ranks on several hosts
  Forecast forecast;
};

/// For each method each number of ranks; reads the matrix once.
std::vector<RanksForecast> forecast_ranks(const PerformanceModel& model, const RowSource& matrix,
                                          std::span<const std::string> methods, std::span<const int> ranks);

}  // namespace shardmat::tools
