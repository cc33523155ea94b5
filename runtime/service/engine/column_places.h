// Between the places that a command names for x and y, and a rank's X and Y as blocks on its device.
//
// Not collective. Threads: one at a time.
#pragma once

#include <span>

#include "kernels/base/dense.h"
#include "kernels/base/device.h"
#include "runtime/maps/row_map.h"
#include "runtime/service/engine/column_transfer.h"
#include "runtime/service/engine/memories.h"
#include "runtime/service/engine/resident_vectors.h"
#include "runtime/service/wire/command.h"

namespace shardmat::service {

struct ColumnPlaces {
  ColumnTransfer& transfer;
  Memories& memories;
  const ResidentVectors& vectors;
  Stream& stream;

  /// Column j of `block` becomes this rank's entries of `side` of columns[j], and zero behind the last of them.
  /// REQUIRES: the block is row-major, with a row for each entry of the map.
  void take(std::span<const Column> columns, Place Column::*side, const RowMap& map, const Dense& block);
  /// columns[j].y becomes alpha·(column j of `y`) + beta·(itself), in this rank's entries. Waits for it.
  void give(const Dense& y, const RowMap& map, std::span<const Column> columns);
};

}  // namespace shardmat::service
