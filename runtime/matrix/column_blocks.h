// Multiplies X in blocks of columns. While one block is multiplied, the next block moves between the ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/context/context.h"
#include "runtime/matrix/schedule.h"

namespace shardmat {

/// Allowed widths of the blocks, widest first: the divisors of `columns` that are greater than one. If any divisor is even,
/// only even divisors: kernels read rows of X in wide words.
std::vector<std::int64_t> column_blocks_of(std::int64_t columns);

/// Whether a block of columns may move while another block is multiplied.
enum class BlockOverlap { no, yes };

/// For an X that does not fit on the device together with the entries that other ranks send. The device holds all columns of
/// this rank's own entries, and two blocks of columns with the received entries. This saves memory if the blocks are narrow
/// and many entries are received. It takes longer: own entries are copied, and narrow products read the matrix more often.
/// A kernel that fills the device delays the exchange.
class ColumnBlocks final : public Schedule {
 public:
  /// Cuts `right_hand_sides` columns into blocks of `moving.width` columns, which must be a divisor. `first` is an exchange
  /// of this width and type; a second exchange is made over its column map. Collective; the same error on all ranks.
  ColumnBlocks(Context& context, const ExchangeContext& moving, std::int64_t right_hand_sides, BlockOverlap overlap,
               std::unique_ptr<Exchange> first);

  Exchange& exchange() const override { return *slots_[0].exchange; }
  std::optional<std::int64_t> first_late_entry() const override { return {}; }
  std::int64_t width() const override { return width_; }
  void* local_x() const override { return own_x_.data(); }
  std::int64_t bytes_received() const override { return blocks() * exchange().bytes_received(); }
  std::int64_t device_bytes() const override;

  bool overlaps_two_blocks() const override { return false; }
  void multiply(RowPlans rows, double alpha, double beta, void* y, std::int64_t ldy, Stream& stream) const override;
  void multiply_local(RowPlans rows, double alpha, double beta, void* y, std::int64_t ldy, Stream& stream) const override;
  void move(Stream& stream) const override;

 private:
  /// Holds every other block of X, in the form that kernels read.
  struct Slot {
    std::unique_ptr<Exchange> exchange;
    mutable Event arrived, multiplied;
  };
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
  mutable Event forked_;  ///< start of the work on the exchange stream
  std::vector<Slot> slots_;
  Buffer own_x_;
};

}  // namespace shardmat
