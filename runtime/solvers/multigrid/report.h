// What multigrid tells of its levels.
//
// Threads: values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardmat {

/// Of all ranks.
struct LevelReport {
  std::int64_t unknowns = 0;
  std::int64_t nonzeros = 0;  ///< stored zeros of blocks included
  double radius = 0;          ///< of D⁻¹·A, as smoothing takes it: Level::find_radius(); 0: nothing needs it
  bool exact = false;         ///< solved by its inverse
  int ranks = 1;              ///< that have rows of it
};

/// Time of a part of the set-up, on all levels together.
struct SetupPart {
  std::string name;
  double seconds = 0;
};

/// The same on all ranks but for the seconds.
struct MultigridReport {
  std::vector<LevelReport> levels;
  double operator_complexity = 1;  ///< nonzeros of all levels over those of the first
  std::string modes;               ///< NearNullSpace::why
  std::string cycle;               ///< V, W or K
  std::string smoother;            ///< multigrid::smoothers()
  bool smoothed = true;            ///< P is; else A is far from symmetric, and aggregates are small
  bool set_up_on_gpu = false;      ///< all levels were
  std::string why_on_host;         ///< of a cycle on a GPU, else
  double seconds = 0;              ///< of the set-up, or of the last refresh
  std::vector<SetupPart> parts;    ///< of these seconds, in the order in which they began
  std::int64_t bytes = 0;          ///< device memory of the hierarchy on all ranks together
};

}  // namespace shardmat
