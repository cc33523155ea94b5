// z = (incomplete factors)⁻¹·r on a GPU, in one of three ways:
//
//   waiting   one launch a triangle: rows in the order of their levels, and a row polls the entries of x that it needs. An
//             entry that is not there yet has all bits set, which no result has
//   levels    one launch a level, for triangles of few levels, as orders by colours make them
//   sweeps    Jacobi's iteration for a triangle, a launch each: x becomes b − L·x. No solve is exact, and no row waits
//
// Everything inside has the type of the factors.
//
// Threads: as Plan.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/base/types.h"
#include "kernels/triangles/slices.h"

namespace shardmat::triangles {

struct Ways {
  int sweeps = 0;                   ///< above 0: so many of each triangle in place of exact solves
  std::int64_t most_launches = 32;  ///< triangles of at most so many levels are solved by levels
};

/// A triangle on the device.
struct DeviceSlices {
  int team = 1;
  Buffer start, row, column, value;    ///< as Slices
  std::vector<std::int64_t> level{0};  ///< as Slices

  std::int64_t bytes() const {
    return static_cast<std::int64_t>(start.bytes() + row.bytes() + column.bytes() + value.bytes());
  }
};

class FactorSolve {
 public:
  /// `place`: where each unknown of the factors lies in vectors of r and z. Waits for the stream. Throws Error(resources).
  FactorSolve(const HostFactors& factors, std::span<const std::int32_t> place, const Ways& ways, int columns,
              Stream& stream);

  /// Row-major vectors of f32 or f64, in stream order. They do not overlap.
  void apply(const void* r, void* z, ValueType type, Stream& stream) const;

  std::int64_t bytes() const;
  /// Of the lower and of the upper triangle; 1 with sweeps.
  std::int64_t lower_levels() const { return std::ssize(lower_.level) - 1; }
  std::int64_t upper_levels() const { return std::ssize(upper_.level) - 1; }
  bool waits() const { return waits_; }
  /// Kernels that apply() launches.
  std::int64_t launches() const;
  const Ways& ways() const { return ways_; }

 private:
  template <class V>
  void solve(const void* r, void* z, bool f64, Stream& stream) const;
  template <class V>
  void sweep(const void* r, void* z, bool f64, Stream& stream) const;

  ValueType type_;
  int size_, columns_;
  Ways ways_;
  bool waits_ = false;  ///< rows of both triangles do
  std::int64_t count_;
  DeviceSlices lower_, upper_;
  Buffer inverse_, place_;  ///< by the numbers of rows
  Buffer y_, x_, other_;    ///< of `columns_` right-hand sides, one after the other
  Buffer tickets_;
};

}  // namespace shardmat::triangles
