// The order in which x moves and rows are multiplied.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "comm/exchange/exchange.h"
#include "kernels/base/device.h"
#include "runtime/matrix/row_plan.h"

namespace shardmat {

/// Plans for the rows of a rank, in one or two consecutive blocks. If there are two, the first needs no x of other ranks.
using RowPlans = std::span<const RowPlan>;

/// Runs the steps of a product: for all right-hand sides at once (all_at_once.h), or for blocks of them (column_blocks.h).
/// Owns the exchanges. Row plans must be made for width() right-hand sides.
class Schedule {
 public:
  virtual ~Schedule() = default;

  /// The exchange, for width() right-hand sides.
  virtual Exchange& exchange() const = 0;
  /// As Exchange::first_late_entry(); none if a product cannot begin early.
  virtual std::optional<std::int64_t> first_late_entry() const = 0;
  /// Right-hand sides that move and are multiplied at a time.
  virtual std::int64_t width() const = 0;
  /// Where this rank's own entries of X lie: row-major, all right-hand sides.
  virtual void* local_x() const = 0;
  /// Bytes received from other ranks for one product.
  virtual std::int64_t bytes_received() const = 0;
  /// Device memory of X and of the exchanges.
  virtual std::int64_t device_bytes() const = 0;

  /// True if a product is faster when the rows are cut in two blocks.
  virtual bool overlaps_two_blocks() const = 0;
  /// Y = alpha·A·X + beta·Y in stream order, Y row-major, its rows `ldy` values apart. Collective; does not wait.
  virtual void multiply(RowPlans rows, double alpha, double beta, void* y, std::int64_t ldy, Stream& stream) const = 0;
  /// The same without the exchange, with the entries of X that arrived last; for timing.
  virtual void multiply_local(RowPlans rows, double alpha, double beta, void* y, std::int64_t ldy, Stream& stream) const = 0;
  /// The exchange alone, for timing. Collective; does not wait.
  virtual void move(Stream& stream) const = 0;
};

}  // namespace shardmat
