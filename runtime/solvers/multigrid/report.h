// What multigrid tells of its levels.
//
// Threads: values; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace shardmat {

/// A level, for reports.
struct MultigridLevel {
  std::int64_t rows = 0, nnz = 0;
  int node_size = 1;
  double radius = 0, strength = 0;  ///< largest eigenvalue of D⁻¹·A; theta that was taken; 0 on the last level
  std::string kernel;
};

struct MultigridReport {
  std::vector<MultigridLevel> levels;
  double operator_complexity = 1;  ///< nonzeros of all levels over those of the first
  std::string modes;               ///< "6 rigid-body modes", and why
  double seconds = 0;
  std::map<std::string, double> parts;  ///< seconds of each part of the set-up
};

}  // namespace shardmat
