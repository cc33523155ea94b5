// How strictly triangular rows of dense blocks lie in the memory of a GPU, so that rows that do not wait for each other are
// solved together.
//
//   level   rows that are coupled with rows of earlier levels alone
//   slice   the lanes of a warp: 32 / team rows of one level, a team of lanes each
//   column[slot][lane], value[slot][entry of the block][lane]: lane l of a team has blocks l, l + team, … of its row
//
// Rows are numbered by their levels in the lower triangle, so that a warp reads and writes neighbours.
//
// Threads: values; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/host_vector.h"
#include "kernels/base/types.h"

namespace shardmat::triangles {

constexpr int kMostUnknowns = 6;  ///< of a block
constexpr int kLanes = 32;

/// Row i of blocks is coupled with rows before it alone.
struct TriangleRows {
  std::int64_t count = 0;
  const std::int64_t* start = nullptr;
  const std::int32_t* column = nullptr;
  const void* value = nullptr;  ///< column-major blocks
  bool reversed = false;        ///< rows stand from the last to the first: row q is row count − 1 − q of the matrix
};

/// (L + I)·D·(I + U) in host memory, U as D⁻¹·U·… has it: x = D⁻¹·y − U·x.
struct HostFactors {
  ValueType type = ValueType::f64;
  int size = 1;
  TriangleRows lower, upper;
  const void* inverse = nullptr;  ///< D⁻¹: column-major blocks by row
};

/// Rows of the matrix in the order in which they are solved; those of a level follow each other.
struct Levels {
  HostVector<std::int32_t> row;
  std::vector<std::int64_t> start{0};  ///< of each level, then the end

  std::int64_t count() const { return std::ssize(start) - 1; }
};

/// `together`: rows of the matrix in the order in which those of a level shall stand. Rows of equal length come together.
Levels find_levels(const TriangleRows& rows, const HostVector<std::int32_t>& together);
/// One level with all rows, for sweeps that do not wait.
Levels one_level(const TriangleRows& rows);

struct Slices {
  int team = 1;
  HostVector<std::int64_t> start{0};  ///< the first slot of each slice, then the end
  HostVector<std::int32_t> row;       ///< the number of the row of each team; -1: none
  HostVector<std::int32_t> column;    ///< the number of a row; -1: no block
  HostVector<char> value;
  std::vector<std::int64_t> level{0};  ///< the first slice of each, then the end

  std::int64_t count() const { return std::ssize(start) - 1; }
  std::int64_t bytes() const {
    return 8 * std::ssize(start) + 4 * (std::ssize(row) + std::ssize(column)) + std::ssize(value);
  }
};

/// Lanes for a row: as many as its blocks can use, where levels have few rows.
int team_of(const TriangleRows& rows, const Levels& levels);
/// `number`: of each row of the matrix.
Slices make_slices(const TriangleRows& rows, const Levels& levels, const HostVector<std::int32_t>& number, int size,
                   ValueType type, int team);

}  // namespace shardmat::triangles
