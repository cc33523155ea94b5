// Where the entries of x lie when every rank has all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "comm/exchange/x_parts.h"
#include "kernels/base/host_vector.h"

namespace shardmat {

/// Which entries of x each rank owns, and where they lie in the gathered vector: part p owns columns
/// [starts[p], starts[p+1]) and lies at p·stride, so unequal parts fit an equal-count all-gather without
/// unpacking.
struct GatheredLayout {
  std::vector<std::int64_t> starts;  ///< P + 1 entries, the first 0, not decreasing
  std::int64_t stride = 0;           ///< entries; the largest part rounded up to 32
  /// moved[p·stride + i] = place in part p of its column i; empty: column i lies at place i.
  HostVector<std::int32_t> moved;

  int parts() const { return static_cast<int>(starts.size()) - 1; }
  std::int64_t length() const { return stride * parts(); }  ///< entries of the gathered vector, padding included
  std::int64_t part_size(int part) const;
  /// Columns become positions in the gathered vector. Throws Error(internal) for a column that is in no part.
  void renumber(std::span<std::int64_t> columns) const;
  /// Gives up `moved`, which only renumber() needs.
  void forget_columns();
};

/// Entries of the gathered vector of such parts, at most; not limited to 2^31.
std::int64_t gathered_length(const std::vector<std::int64_t>& starts);

/// Throws Error(resources) naming the reason if the gathered vector would have 2^31 entries or more.
GatheredLayout make_gathered_layout(std::vector<std::int64_t> starts);

/// The same with the order of the parts. Collective: where parts have one, all ranks learn each other's (4 bytes a column).
GatheredLayout make_gathered_layout(Communicator& communicator, const XParts& parts);

}  // namespace shardmat
