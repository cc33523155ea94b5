// Says which entries of x each rank owns and needs, and numbers a rank's columns for its kernels. Made once for a matrix and
// shared by all its exchanges, for any number of right-hand sides.
//
// Threads: one thread at a time changes a map; several may read it at once.
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
#include "kernels/base/number_view.h"

namespace shardmat {

/// How the entries of x lie in a rank's memory.
enum class ColumnLayout {
  compact,   ///< this rank's own entries, then the entries of other ranks that its rows need (halo.h)
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
  /// Entries of other ranks that one exchange receives, padding included.
  std::int64_t received() const { return received_; }

  /// Replaces global columns by their positions in this rank's x. REQUIRES: columns for which the map was made. Throws
  /// Error(internal) for any other column, and after forget_columns().
  void renumber(std::span<std::int64_t> columns) const;
  void renumber(std::span<std::int32_t> columns) const;
  /// True if every column is its own position, so that renumber() changes nothing: with one rank, for an x in the order of
  /// the columns.
  bool keeps_columns() const {
    return std::visit([](const auto& map) { return map.keeps_columns(); }, map_);
  }
  /// Frees the memory that only renumber() needs.
  void forget_columns();

  /// REQUIRES: layout() is compact for halo(), gathered for gathered().
  const Halo& halo() const { return std::get<Halo>(map_); }
  const GatheredLayout& gathered() const { return std::get<GatheredLayout>(map_); }

 private:
  void require_columns_known() const;

  ColumnLayout layout_;
  std::int64_t length_, own_, first_own_, received_;
  bool forgotten_ = false;
  std::variant<Halo, GatheredLayout> map_;
};

/// Makes a map for `columns`, the global columns of this rank's nonzeros, in any order and with repetitions. Collective; the
/// same error on all ranks. Throws Error(resources) if the layout needs too much memory or more than 32-bit positions.
std::shared_ptr<ColumnMap> make_column_map(ColumnLayout layout, Communicator& communicator, const XParts& parts,
                                           const ColumnView& columns);

}  // namespace shardmat
