// Matrices that couple each node of a grid with its neighbours along the axes: 7 points, or 5 and 3 on flat grids.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "partition/generators/grid.h"

namespace shardmat {

/// The diagonal is minus the sum of a node's couplings. Those to missing neighbours count, too: their values are known to
/// be 0.
class SevenPointSource : public GridSource {
 public:
  SevenPointSource(std::string name, const Grid& grid) : GridSource(std::move(name), grid, 1) {}

 protected:
  /// The entry of node p for its neighbour in direction d, at side -1 or 1. The neighbour may be missing or clamped.
  virtual double coupling(const GridPoint& p, std::size_t d, std::int64_t side) const = 0;

 private:
  void count(std::int64_t begin, std::int64_t end, std::int64_t* lengths) const final;
  void fill(std::int64_t begin, std::int64_t end, HostCsr& part) const final;
};

}  // namespace shardmat
