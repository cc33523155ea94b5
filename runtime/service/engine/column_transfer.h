// Between columns in host memory, in original order, and a rank's entries of them as a block on its device, whose columns
// are interleaved.
//
// Where a rank's entries follow one another, they are copied to and from a GPU as they lie, a few columns at a time, and
// interleaved there. Where they do not, the host interleaves them in a staging buffer.
//
// Not collective. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/base/dense.h"
#include "kernels/base/device.h"
#include "kernels/column_packing.h"
#include "runtime/maps/row_map.h"

namespace shardmat::service {

class ColumnTransfer {
 public:
  /// REQUIRES: the stream outlives this object.
  explicit ColumnTransfer(Stream& stream) : stream_(stream) {}

  /// Makes room, so that blocks like this one are moved without allocating. Throws Error(resources).
  void reserve(const Dense& block, const RowMap& map);
  /// Column j of the block becomes this rank's entries of columns[j], and zero behind the last of them. The block's columns
  /// of those that are null are undefined then. The columns may change once the stream has passed.
  /// REQUIRES: a row of the block for each entry of the map.
  void take(std::span<const std::byte* const> columns, const RowMap& map, const Dense& block);
  /// This rank's entries of columns[j].y become alpha·(column j of the block) + beta·(themselves). Waits for it.
  void give(const Dense& block, const RowMap& map, std::span<const UnpackedColumn> columns);

 private:
  bool on_host() const { return stream_.device().backend == Backend::host; }
  /// True if columns are interleaved on the device.
  bool copies_columns(const Dense& block, const RowMap& map) const;
  void take_on_host(std::span<const std::byte* const> columns, const RowMap& map, const Dense& block);
  void take_to_device(std::span<const std::byte* const> columns, const RowMap& map, const Dense& block);
  void give_from_device(const Dense& block, const RowMap& map, std::span<const UnpackedColumn> columns);

  Stream& stream_;
  Buffer columns_;      ///< some columns, one after another
  HostBuffer staging_;  ///< a block whose entries do not follow one another
};

}  // namespace shardmat::service
