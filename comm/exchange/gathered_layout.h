// The layout of x when every rank holds all of x.
//
// Threads: one thread at a time changes a layout; several may read it at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "comm/exchange/x_parts.h"
#include "kernels/base/host_vector.h"

namespace shardmat {

/// Which entries of x each rank owns, and where they lie in the gathered vector. Part p owns columns
/// [starts[p], starts[p + 1]) and begins at p·stride. So parts of different length fit an all-gather with equal counts, and
/// nothing is unpacked.
struct GatheredLayout {
  std::vector<std::int64_t> starts;  ///< P + 1 entries, the first 0, not decreasing
  std::int64_t stride = 0;  ///< in entries: the length of the largest part; of several, rounded up to a multiple of 32
  /// moved[p·stride + i]: position in part p of the part's column i. Empty: column i has position i.
  HostVector<std::int32_t> moved;

  int parts() const { return static_cast<int>(starts.size()) - 1; }
  std::int64_t length() const { return stride * parts(); }  ///< entries of the gathered vector, padding included
  std::int64_t part_size(int part) const;
  /// Replaces global columns by positions in the gathered vector. Throws Error(internal) for a column that is in no part.
  void renumber(std::span<std::int64_t> columns) const;
  void renumber(std::span<std::int32_t> columns) const;
  /// True if every column is its own position, so that renumber() changes nothing.
  bool keeps_columns() const { return parts() == 1 && moved.empty(); }
  /// Frees `moved`, which only renumber() needs.
  void forget_columns();
};

/// Upper bound of the length of the gathered vector for these parts; it may exceed 2^31.
std::int64_t gathered_length(const std::vector<std::int64_t>& starts);

/// Throws Error(resources) naming the reason if the gathered vector would have 2^31 entries or more.
GatheredLayout make_gathered_layout(std::vector<std::int64_t> starts);

/// The same for parts with an order (XParts::order). Collective: the ranks exchange their orders (4 bytes a column).
GatheredLayout make_gathered_layout(Communicator& communicator, const XParts& parts);

}  // namespace shardmat
