// What a scaling study has to say: what was measured, and as text, JSON and CSV.
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/matrix/distributed_matrix.h"
#include "runtime/run/report.h"
#include "runtime/timing/performance_model.h"
#include "tools/bench/scaling_solve.h"
#include "tools/cli/growing_matrix.h"

namespace shardmat::tools {

/// Why a case with a wrong result has no figures begins with it.
constexpr const char* kWrong = "WRONG";

/// One matrix on some ranks with one exchange.
struct ScalingCase {
  std::string matrix, exchange;
  int ranks = 1;
  MultiplyReport report;  ///< on rank 0; of a case that was read from a file, what read_case() fills in
  std::string kept;       ///< of such a case the report as JSON; else empty
  std::string why_not;    ///< it did not fit, or gave a wrong result; empty: it was measured
  double efficiency = 0;  ///< of perfect scaling from the fastest case of the matrix on the fewest ranks; 0 without one
  int base_ranks = 0;     ///< the ranks of that case
  std::optional<Forecast> forecast;
  int host_ranks = 1, host_cores = 1;  ///< of the host whose ranks have the fewest cores each
  std::vector<std::string> notes;      ///< what makes its figures doubtful, and the likely cause (scaling_notes.h)

  bool measured() const { return why_not.empty(); }
  /// Weak scaling: numbers of the matrix, in braces, grow with the ranks, and perfect is constant time.
  bool weak() const { return grows(matrix); }
  const char* scaling() const { return weak() ? "weak" : "strong"; }

  // What the median iteration is made of, in seconds: product + imbalance + waiting = iteration, none of them negative. The
  // iteration is that of its slowest rank. Products were timed alone before it. Where the product alone took longer than
  // the iteration, which a disturbance of one of the two causes, it counts as long as the iteration, and notes say so.
  double iteration() const { return report.iteration.median; }
  /// The product alone, mean over ranks of each rank's median.
  double product() const { return std::min(report.local.of_ranks.mean, iteration()); }
  /// What the product alone takes longer on the slowest rank.
  double imbalance() const { return std::min(report.local.of_ranks.max, iteration()) - product(); }
  /// What an iteration takes beyond that: the part of moving x that no product hides.
  double waiting() const { return iteration() - std::min(report.local.of_ranks.max, iteration()); }
};

struct ScalingStudy {
  std::string command, date, host, software;  ///< date: UTC, ISO 8601
  std::string folder;                         ///< in which names of matrices are looked for
  int ranks = 1;                              ///< that were started
  std::string type;
  int threads = 0;  ///< host threads of each rank in all cases; 0: on GPUs, each case's share of the cores
  std::int64_t right_hand_sides = 1, iterations = 0;
  Overlap overlap = Overlap::automatic;
  std::vector<ScalingCase> cases;
  std::vector<ScalingCase> to_come;  ///< while the study runs: cases not measured yet
  std::vector<SolveCase> solves;
  std::vector<std::string> no_forecasts;                         ///< what has none, and why
  std::vector<std::pair<std::string, PerformanceModel>> models;  ///< of matrices that were measured on one rank
  std::string asked = "{}";       ///< JSON: the options that decide what is measured; a study goes on only with the same
  std::vector<std::string> runs;  ///< JSON: who measured, where and when (study_runs.h); several if it was interrupted
};

/// Fills in efficiency, base_ranks and notes of each case.
void find_efficiencies(std::vector<ScalingCase>& cases);

/// Lines of at most 125 characters, whatever the figures.
std::string table(const ScalingStudy& study);
nlohmann::ordered_json to_json(const ScalingStudy& study);
/// RFC 4180: a line a case, those without figures, or not measured yet, with a reason. Units are SI and end the names.
std::string to_csv(const ScalingStudy& study);
/// A line a column of it.
std::string csv_help();

}  // namespace shardmat::tools
