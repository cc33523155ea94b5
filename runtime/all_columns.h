// X of all right-hand sides at once; where rows are multiplied while it moves.
#pragma once

#include <memory>
#include <utility>

#include "runtime/context.h"
#include "runtime/moving_x.h"

namespace shardmat {

class AllColumns final : public MovingX {
 public:
  AllColumns(Context& context, std::int64_t right_hand_sides, std::unique_ptr<Exchange> exchange)
      : context_(context),
        columns_(right_hand_sides),
        exchange_(std::move(exchange)),
        forked_(context.device()),
        joined_(context.device()) {}

  Exchange& exchange() const override { return *exchange_; }
  std::optional<std::int64_t> first_late_entry() const override { return exchange_->first_late_entry(); }
  std::int64_t width() const override { return columns_; }
  void renumber(std::span<std::int64_t> columns) override { exchange_->renumber(columns); }
  void* local_x() const override { return exchange_->local_x(); }
  std::int64_t bytes_received() const override { return exchange_->bytes_received(); }
  std::int64_t device_bytes() const override { return exchange_->device_bytes(); }

  bool takes_two_blocks() const override { return true; }
  /// Of two blocks the first is multiplied while x moves on a stream of its own, the second there, once x is here.
  void multiply(std::span<const RowBlock> rows, double alpha, double beta, void* y, Stream& stream) const override;
  void multiply_local(std::span<const RowBlock> rows, double alpha, double beta, void* y, Stream& stream) const override;
  void move(Stream& stream) const override;

 private:
  Context& context_;
  std::int64_t columns_;
  std::unique_ptr<Exchange> exchange_;
  mutable Event forked_, joined_;  ///< where the stream that moves x begins and ends
};

}  // namespace shardmat
