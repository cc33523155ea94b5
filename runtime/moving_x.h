// How X comes to the products of a matrix.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "comm/exchange/exchange.h"
#include "kernels/base/device.h"
#include "runtime/row_block.h"

namespace shardmat {

/// X of a distributed matrix: of all right-hand sides at once (all_columns.h), or some at a time (column_blocks.h). The
/// blocks of rows that it multiplies are given to it, planned for width() right-hand sides.
class MovingX {
 public:
  virtual ~MovingX() = default;

  /// How x moves, of width() right-hand sides.
  virtual Exchange& exchange() const = 0;
  /// As Exchange::first_late_entry(), of what rows planned for width() read; nothing if no product may begin early.
  virtual std::optional<std::int64_t> first_late_entry() const = 0;
  /// Right-hand sides that move and are multiplied at a time.
  virtual std::int64_t width() const = 0;
  /// As Exchange::renumber().
  virtual void renumber(std::span<std::int64_t> columns) = 0;
  /// This rank's own entries of X, row-major, all right-hand sides; as in Exchange::local_x().
  virtual void* local_x() const = 0;
  /// Of other ranks, for one product.
  virtual std::int64_t bytes_received() const = 0;
  /// Memory of the device that X takes, and what moves it.
  virtual std::int64_t device_bytes() const = 0;

  /// Products take two blocks of rows, those that need nothing of other ranks and then the rest; else only one, of all rows.
  virtual bool takes_two_blocks() const = 0;
  /// Y = alpha·A·X + beta·Y in stream order, Y row-major with all columns. Collective; does not wait.
  virtual void multiply(std::span<const RowBlock> rows, double alpha, double beta, void* y, Stream& stream) const = 0;
  /// The same without moving X, for timing: on what came last.
  virtual void multiply_local(std::span<const RowBlock> rows, double alpha, double beta, void* y, Stream& stream) const = 0;
  /// X moves with nothing beside it, for timing. Collective; does not wait.
  virtual void move(Stream& stream) const = 0;
};

}  // namespace shardmat
