// X and Y in blocks of columns: while one block is multiplied, the next moves.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/context.h"
#include "runtime/matrix/schedule.h"

namespace shardmat {

/// Widths of blocks into which so many columns may be cut: all columns first, then narrower blocks. Divisors above one, only
/// even ones if there are any, because kernels read their rows in wide words.
std::vector<std::int64_t> column_blocks_of(std::int64_t columns);

/// May one block of columns move while another is multiplied?
enum class BlockOverlap { no, yes };

/// For X that does not fit the device if entries of other ranks come for all right-hand sides at once. The device holds two
/// blocks of X as kernels read them, and all right-hand sides of this rank's own entries: less memory if blocks are narrow
/// and ranks need much of each other's X. It takes longer: own entries are copied, narrow products read the matrix more
/// often, and kernels that fill the device leave the next block no room to move meanwhile.
class ColumnBlocks final : public Schedule {
 public:
  /// `right_hand_sides` columns, cut into blocks of the context's width, a divisor. `first`: an exchange of that width and
  /// type; a second is made over its map. Collective; the same error on all ranks.
  ColumnBlocks(Context& context, const ExchangeContext& moving, std::int64_t right_hand_sides, BlockOverlap overlap,
               std::unique_ptr<Exchange> first);

  /// One of the two.
  Exchange& exchange() const override { return *slots_[0].exchange; }
  std::optional<std::int64_t> first_late_entry() const override { return {}; }
  std::int64_t width() const override { return width_; }
  void* local_x() const override { return own_x_.data(); }
  /// Of all blocks.
  std::int64_t bytes_received() const override { return blocks() * exchange().bytes_received(); }
  std::int64_t device_bytes() const override;

  bool overlaps_two_blocks() const override { return false; }
  void multiply(RowPlans rows, double alpha, double beta, void* y, std::int64_t ldy, Stream& stream) const override;
  void multiply_local(RowPlans rows, double alpha, double beta, void* y, std::int64_t ldy, Stream& stream) const override;
  void move(Stream& stream) const override;

 private:
  /// What lies in memory as kernels read it: every other block.
  struct Slot {
    std::unique_ptr<Exchange> exchange;
    mutable Event arrived, multiplied;
  };
  /// Where Y goes.
  struct Result {
    double alpha, beta;
    void* y;
    std::int64_t ldy;
  };

  std::int64_t blocks() const { return columns_ / width_; }
  const Slot& slot(std::int64_t block) const { return slots_[static_cast<std::size_t>(block % 2)]; }
  void multiply_in_turn(RowPlans rows, const Result& result, Stream& stream) const;
  void start(std::int64_t block, Stream& stream) const;
  void multiply_block(RowPlans rows, std::int64_t block, const Result& result, Stream& stream) const;

  Context& context_;
  ValueType type_;
  std::int64_t columns_, width_, own_;
  BlockOverlap overlap_;
  mutable Event forked_;  ///< where the stream that moves X begins
  std::vector<Slot> slots_;
  Buffer own_x_;
};

}  // namespace shardmat
