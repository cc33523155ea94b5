// X and Y in blocks of columns: while one block is multiplied, the next moves.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/context.h"
#include "runtime/moving_x.h"

namespace shardmat {

/// Widths of blocks that so many columns may be cut into, all of them first, then narrower ones: divisors above one, only
/// even ones if there are any, whose rows kernels read in wide words.
std::vector<std::int64_t> column_blocks_of(std::int64_t columns);

/// For X that finds no room on the device if the entries of other ranks come for all right-hand sides at once. Two blocks of
/// X are in memory as kernels read them, beside all right-hand sides of this rank's own entries: that is less if blocks are
/// narrow and ranks need much of each other's X. It takes longer: own entries are copied, narrow products read the matrix
/// more often, and kernels that want the whole device leave the next block no room to move beside them.
class ColumnBlocks final : public MovingX {
 public:
  /// Of `right_hand_sides` so many at a time, a divisor of them. With `beside`, one block moves while another is multiplied.
  /// The rest as in make_exchange(), which this calls. Collective.
  ColumnBlocks(Context& context, ValueType type, std::int64_t right_hand_sides, std::int64_t at_a_time, bool beside,
               std::string_view exchange, const XParts& parts, std::span<const std::int64_t> columns);

  /// One of the two.
  Exchange& exchange() const override { return *slots_[0].exchange; }
  std::optional<std::int64_t> first_late_entry() const override { return {}; }
  std::int64_t width() const override { return width_; }
  void renumber(std::span<std::int64_t> columns) override;
  void* local_x() const override { return own_x_.data(); }
  /// Of all blocks.
  std::int64_t bytes_received() const override { return blocks() * exchange().bytes_received(); }
  std::int64_t device_bytes() const override;

  bool takes_two_blocks() const override { return false; }
  void multiply(std::span<const RowBlock> rows, double alpha, double beta, void* y, Stream& stream) const override;
  void multiply_local(std::span<const RowBlock> rows, double alpha, double beta, void* y, Stream& stream) const override;
  void move(Stream& stream) const override;

 private:
  /// What lies in memory as kernels read it: every other block.
  struct Slot {
    std::unique_ptr<Exchange> exchange;
    mutable Event arrived, multiplied;
  };

  std::int64_t blocks() const { return columns_ / width_; }
  const Slot& slot(std::int64_t block) const { return slots_[static_cast<std::size_t>(block % 2)]; }
  void multiply_in_turn(const RowBlock& rows, double alpha, double beta, void* y, Stream& stream) const;
  void start(std::int64_t block, Stream& stream) const;
  void multiply_block(const RowBlock& rows, std::int64_t block, double alpha, double beta, void* y, Stream& stream) const;

  Context& context_;
  ValueType type_;
  std::int64_t columns_, width_, own_;
  bool beside_;
  mutable Event forked_;  ///< where the stream that moves X begins
  std::vector<Slot> slots_;
  Buffer own_x_;
};

}  // namespace shardmat
