#include "runtime/column_blocks.h"

#include <utility>

#include "kernels/vector.h"

namespace shardmat {

std::vector<std::int64_t> column_blocks_of(std::int64_t columns) {
  std::vector<std::int64_t> even, odd;
  for (std::int64_t width = columns; width > 1; --width)
    if (columns % width == 0) (width % 2 == 0 ? even : odd).push_back(width);
  return even.empty() ? odd : even;
}

ColumnBlocks::ColumnBlocks(Context& context, ValueType type, std::int64_t right_hand_sides, std::int64_t at_a_time,
                           bool beside, std::string_view exchange, const XParts& parts,
                           std::span<const std::int64_t> columns)
    : context_(context),
      type_(type),
      columns_(right_hand_sides),
      width_(at_a_time),
      own_(parts.starts[static_cast<std::size_t>(context.communicator().rank()) + 1] -
           parts.starts[static_cast<std::size_t>(context.communicator().rank())]),
      beside_(beside),
      forked_(context.device()) {
  // Not with the few thread blocks of an exchange beside products of packed rows: where X takes long to move, entries are
  // scattered, and with few the time is that of their latency, which the product beside doubles.
  const ExchangeContext moving = context.exchange_context(type, width_);
  for (int i = 0; i < 2; ++i)
    slots_.push_back({make_exchange(i == 0 ? exchange : slots_[0].exchange->name(), moving, parts, columns),
                      Event(context.device()), Event(context.device())});
  context.communicator().together([&] {
    const std::int64_t bytes = own_ * columns_ * static_cast<std::int64_t>(size_of(type));
    require_memory(context.device(), bytes, "this rank's entries of X");
    own_x_ = Buffer(context.device(), static_cast<std::size_t>(bytes));
    fill_bytes(own_x_.data(), 0, own_x_.bytes(), context.stream());  // on the host memory is taken when it is touched
    context.stream().synchronize();
  });
}

void ColumnBlocks::renumber(std::span<std::int64_t> columns) {
  slots_[0].exchange->renumber(columns);
  slots_[1].exchange->renumber({});
}

/// Puts the block's columns where its exchange takes them from, and moves them.
void ColumnBlocks::start(std::int64_t block, Stream& stream) const {
  const std::size_t value = size_of(type_), row = static_cast<std::size_t>(columns_) * value,
                    part = static_cast<std::size_t>(width_) * value;
  copy_rows(part, own_, own_x_.as<char>() + static_cast<std::size_t>(block) * part, row, slot(block).exchange->local_x(),
            part, stream);
  slot(block).exchange->start(stream);
}

void ColumnBlocks::multiply_block(const RowBlock& rows, std::int64_t block, double alpha, double beta, void* y,
                                  Stream& stream) const {
  void* first = static_cast<char*>(y) + static_cast<std::size_t>(block * width_) * size_of(sum_type(type_));
  rows.multiply(alpha, slot(block).exchange->x(), beta, first, columns_, stream);
}

void ColumnBlocks::multiply_in_turn(const RowBlock& rows, double alpha, double beta, void* y, Stream& stream) const {
  for (std::int64_t block = 0; block < blocks(); ++block) {
    start(block, stream);
    slot(block).exchange->finish(stream);
    multiply_block(rows, block, alpha, beta, y, stream);
  }
}

void ColumnBlocks::multiply(std::span<const RowBlock> rows, double alpha, double beta, void* y, Stream& stream) const {
  if (!beside_) return multiply_in_turn(rows[0], alpha, beta, y, stream);
  Stream& moving = context_.exchange_stream();
  const auto finish = [&](std::int64_t block) {
    slot(block).exchange->finish(moving);
    slot(block).arrived.record(moving);
  };
  forked_.record(stream);
  moving.wait_for(forked_);
  start(0, moving);
  finish(0);
  for (std::int64_t block = 0; block < blocks(); ++block) {
    const std::int64_t next = block + 1;
    if (next < blocks()) {
      if (block > 0) moving.wait_for(slot(next).multiplied);  // block - 1, which lay where the next one goes
      start(next, moving);
    }
    stream.wait_for(slot(block).arrived);
    multiply_block(rows[0], block, alpha, beta, y, stream);
    slot(block).multiplied.record(stream);
    if (next < blocks()) finish(next);
  }
}

void ColumnBlocks::multiply_local(std::span<const RowBlock> rows, double alpha, double beta, void* y, Stream& stream) const {
  for (std::int64_t block = 0; block < blocks(); ++block) multiply_block(rows[0], block, alpha, beta, y, stream);
}

void ColumnBlocks::move(Stream& stream) const {
  for (std::int64_t block = 0; block < blocks(); ++block) {
    start(block, stream);
    slot(block).exchange->finish(stream);
  }
}

std::int64_t ColumnBlocks::device_bytes() const {
  std::int64_t bytes = static_cast<std::int64_t>(own_x_.bytes());
  for (const Slot& slot : slots_) bytes += slot.exchange->device_bytes();
  return bytes;
}

}  // namespace shardmat
