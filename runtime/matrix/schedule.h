// In which order x moves and rows are multiplied.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "comm/exchange/exchange.h"
#include "kernels/base/device.h"
#include "runtime/matrix/row_plan.h"

namespace shardmat {

/// The rows of a rank as one or two consecutive blocks; of two, the first needs no x of other ranks.
using RowPlans = std::span<const RowPlan>;

/// The steps of a product: all right-hand sides at once (all_at_once.h), or blocks of them (column_blocks.h). Owns the
/// exchanges. The plans of the rows are for width() right-hand sides.
class Schedule {
 public:
  virtual ~Schedule() = default;

  /// How x moves, for width() right-hand sides.
  virtual Exchange& exchange() const = 0;
  /// As Exchange::first_late_entry(); nothing if no product may begin early.
  virtual std::optional<std::int64_t> first_late_entry() const = 0;
  /// Right-hand sides that move and are multiplied at a time.
  virtual std::int64_t width() const = 0;
  /// This rank's own entries of X, row-major, all right-hand sides; as in Exchange::local_x().
  virtual void* local_x() const = 0;
  /// From other ranks, for one product.
  virtual std::int64_t bytes_received() const = 0;
  /// Device memory of X and of what moves it.
  virtual std::int64_t device_bytes() const = 0;

  /// The product gains if the rows are cut in two blocks.
  virtual bool overlaps_two_blocks() const = 0;
  /// Y = alpha·A·X + beta·Y in stream order, Y row-major, its rows `ldy` values apart. Collective; does not wait.
  virtual void multiply(RowPlans rows, double alpha, double beta, void* y, std::int64_t ldy, Stream& stream) const = 0;
  /// The same without moving X, for timing: on what came last.
  virtual void multiply_local(RowPlans rows, double alpha, double beta, void* y, std::int64_t ldy, Stream& stream) const = 0;
  /// X moves and nothing else runs, for timing. Collective; does not wait.
  virtual void move(Stream& stream) const = 0;
};

}  // namespace shardmat
