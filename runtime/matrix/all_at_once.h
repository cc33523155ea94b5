// Moves all columns of X in one exchange. Rows that need no x of other ranks are multiplied during the exchange.
#pragma once

#include <memory>
#include <utility>

#include "runtime/context/context.h"
#include "runtime/matrix/schedule.h"

namespace shardmat {

class AllAtOnce final : public Schedule {
 public:
  AllAtOnce(Context& context, std::int64_t right_hand_sides, std::unique_ptr<Exchange> exchange)
      : context_(context),
        columns_(right_hand_sides),
        exchange_(std::move(exchange)),
        forked_(context.device()),
        joined_(context.device()) {}

  Exchange& exchange() const override { return *exchange_; }
  std::optional<std::int64_t> first_late_entry() const override { return exchange_->first_late_entry(); }
  std::int64_t width() const override { return columns_; }
  void* local_x() const override { return exchange_->local_x(); }
  std::int64_t bytes_received() const override { return exchange_->bytes_received(); }
  std::int64_t device_bytes() const override { return exchange_->device_bytes(); }

  bool overlaps_two_blocks() const override { return true; }
  /// With two blocks of rows: the first is multiplied on `stream` while x moves on the exchange stream; the second is
  /// multiplied on the exchange stream after x has arrived.
  void multiply(RowPlans rows, double alpha, double beta, void* y, std::int64_t ldy, Stream& stream) const override;
  void multiply_local(RowPlans rows, double alpha, double beta, void* y, std::int64_t ldy, Stream& stream) const override;
  void move(Stream& stream) const override;

 private:
  Context& context_;
  std::int64_t columns_;
  std::unique_ptr<Exchange> exchange_;
  mutable Event forked_, joined_;  ///< start and end of the work on the exchange stream
};

}  // namespace shardmat
