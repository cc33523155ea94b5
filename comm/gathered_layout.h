// Where the entries of x lie when every rank has all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/exchange.h"

namespace shardmat {

/// Which entries of x each rank owns, and where they lie in the gathered vector: part p owns columns
/// [starts[p], starts[p+1]) and lies at p·stride, so unequal parts fit an equal-count all-gather without
/// unpacking.
struct GatheredLayout {
  std::vector<std::int64_t> starts;  ///< P + 1 entries, the first 0, not decreasing
  std::int64_t stride = 0;           ///< entries; the largest part rounded up to 32

  int parts() const { return static_cast<int>(starts.size()) - 1; }
  std::int64_t length() const { return stride * parts(); }  ///< entries of the gathered vector, padding included
  std::int64_t part_size(int part) const;
  /// Position of a global column in the gathered vector. O(log P). Throws Error(internal) if there is no such
  /// column.
  std::int64_t position(std::int64_t column) const;
};

/// Throws Error(resources) naming the reason if the gathered vector would have 2^31 entries or more.
GatheredLayout make_gathered_layout(std::vector<std::int64_t> starts);

/// Bytes of the gathered vector.
std::size_t gathered_bytes(const GatheredLayout& layout, ValueType type);
/// Bytes of one part's slot in it.
std::size_t slot_bytes(const GatheredLayout& layout, ValueType type);

/// Columns become positions in the gathered vector. Collective: where parts have an order of their own, all ranks learn each
/// other's (4 bytes a column).
void renumber_gathered(Communicator& communicator, const GatheredLayout& layout, const XParts& parts,
                       std::span<std::int64_t> columns);

}  // namespace shardmat
