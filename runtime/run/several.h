// Iterates several large matrices together: an iteration multiplies each matrix once. Large matrices are split over all
// ranks and multiplied one after the other. A small matrix goes whole to one rank, which saves the exchange. For many small
// matrices in one launch see batched_multiply.h.
//
// Threads: one thread of each rank; multiply_several() is collective.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/run/multiply.h"

namespace shardmat {

enum class SeveralPlacement {
  automatic,  ///< whichever is predicted to be faster
  split,      ///< each matrix over all ranks
  whole,      ///< each matrix on one rank
};
/// From auto, split or whole. Throws Error(usage) for any other word.
SeveralPlacement parse_several_placement(std::string_view word);

struct SeveralOptions {
  std::vector<std::string> matrices;  ///< files or generators; the same one may come several times
  SeveralPlacement placement = SeveralPlacement::automatic;
  MultiplyOptions each;  ///< used: load, choices, x (no file), seed, alpha, mode, iterations, graph, verify, progress
};

struct SeveralItem {
  std::string matrix;
  std::int64_t rows = 0, cols = 0, nnz = 0;
  int rank = -1;                  ///< the rank that holds the whole matrix; -1: split over all ranks
  std::string kernel, exchange;   ///< of this rank; of rank 0 for a split matrix
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
  double predicted_split = 0, predicted_whole = 0;  ///< seconds of an iteration; 0 if not predicted
  IterationTimes iteration, local, exchange;        ///< of all matrices together
  bool graph = false;
  double gflops = 0;

  bool passed() const;  ///< true if no verification failed
};

/// Collective; the report is the same on all ranks. A failed verification does not throw: the report says so, and nothing is
/// iterated. Any other failure throws the same Error on all ranks.
SeveralReport multiply_several(Context& context, const SeveralOptions& options);

std::string to_text(const SeveralReport& report);
std::string to_json(const SeveralReport& report);

}  // namespace shardmat
