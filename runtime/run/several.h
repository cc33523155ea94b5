// Several large matrices iterated together (many small ones in one launch are batched_multiply.h): an iteration multiplies
// each of them once. Large ones are split over all ranks, one after the other; small ones go whole to one rank each, where
// nothing has to be exchanged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/run/multiply.h"

namespace shardmat {

enum class SeveralPlacement {
  automatic,  ///< what is predicted to be faster
  split,      ///< each matrix over all ranks
  whole,      ///< each matrix on one rank
};
/// From auto, split or whole. Throws Error(usage) for any other word.
SeveralPlacement parse_several_placement(std::string_view word);

struct SeveralOptions {
  std::vector<std::string> matrices;  ///< may be the same
  SeveralPlacement placement = SeveralPlacement::automatic;
  MultiplyOptions each;  ///< for all: load, x (no file), seed, alpha, mode, iterations, graph, verify, progress
};

struct SeveralItem {
  std::string matrix;
  std::int64_t rows = 0, cols = 0, nnz = 0;
  int rank = -1;                  ///< that has it whole; -1: all ranks share it
  std::string kernel, exchange;   ///< of that rank, else of rank 0
  std::int64_t column_block = 1;  ///< right-hand sides that move and are multiplied at a time
  std::optional<VerifyResult> verification;
  IterationEstimate estimate;  ///< modes dots and power
};

struct SeveralReport {
  std::vector<SeveralItem> items;  ///< in the order given
  std::string placement, why, type, mode, backend;
  std::vector<RankPlace> ranks;
  std::int64_t right_hand_sides = 1;
  OverRanks rank_nnz, device_bytes;
  double predicted_split = 0, predicted_whole = 0;  ///< seconds of an iteration; 0 where it was not worked out
  IterationTimes iteration, local, exchange;        ///< of all matrices together
  bool graph = false;
  double gflops = 0;

  bool passed() const;  ///< no verification failed
};

/// Collective; the report is the same on all ranks. A failed verification is in the report, not thrown; then nothing is
/// iterated. Everything else that goes wrong throws the same Error on all ranks.
SeveralReport multiply_several(Context& context, const SeveralOptions& options);

std::string to_text(const SeveralReport& report);
std::string to_json(const SeveralReport& report);

}  // namespace shardmat
