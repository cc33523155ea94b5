// Which entries of x each rank owns and needs, and the numbers by which a rank's kernels know its columns. Made once for a
// matrix; every exchange of the matrix shares it, whatever its number of right-hand sides.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "comm/communicator.h"
#include "comm/exchange/gathered_layout.h"
#include "comm/exchange/halo.h"
#include "comm/exchange/x_parts.h"

namespace shardmat {

/// How the entries of x lie in a rank's memory.
enum class ColumnLayout {
  compact,   ///< this rank's own entries, then the entries that its rows need of other ranks (halo.h)
  gathered,  ///< all entries, each rank's in a slot of equal length (gathered_layout.h)
};

class ColumnMap {
 public:
  explicit ColumnMap(Halo halo);
  /// `rank`: this rank.
  ColumnMap(GatheredLayout layout, int rank);

  ColumnLayout layout() const { return layout_; }
  /// Entries of x in this rank's memory, padding included.
  std::int64_t length() const { return length_; }
  /// Entries that this rank owns: [first_own(), first_own() + own()).
  std::int64_t own() const { return own_; }
  std::int64_t first_own() const { return first_own_; }
  /// Entries of other ranks that one exchange brings, padding included.
  std::int64_t received() const { return received_; }

  /// Global columns become positions in this rank's x. REQUIRES: columns among those that the map was made for. Throws
  /// Error(internal) for any other column, and after forget_columns().
  void renumber(std::span<std::int64_t> columns) const;
  /// Gives up the memory that only renumber() needs.
  void forget_columns();

  /// REQUIRES: the layout of that name.
  const Halo& halo() const { return std::get<Halo>(map_); }
  const GatheredLayout& gathered() const { return std::get<GatheredLayout>(map_); }

 private:
  ColumnLayout layout_;
  std::int64_t length_, own_, first_own_, received_;
  bool forgotten_ = false;
  std::variant<Halo, GatheredLayout> map_;
};

/// Collective; the same error on all ranks. `columns`: those of this rank's nonzeros, in any order, each as often as it
/// comes. Throws Error(resources) for a layout that needs more memory or larger numbers than there are.
std::shared_ptr<ColumnMap> make_column_map(ColumnLayout layout, Communicator& communicator, const XParts& parts,
                                           std::span<const std::int64_t> columns);

}  // namespace shardmat
