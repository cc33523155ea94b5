#include "runtime/matrix/column_blocks.h"

#include <utility>

#include "kernels/vector.h"

namespace shardmat {

std::vector<std::int64_t> column_blocks_of(std::int64_t columns) {
  std::vector<std::int64_t> even, odd;
  for (std::int64_t width = columns; width > 1; --width)
    if (columns % width == 0) (width % 2 == 0 ? even : odd).push_back(width);
  return even.empty() ? odd : even;
}

// The exchanges are not made for overlapping with a product of packed rows, which would give them few thread blocks: where X
// takes long to move, entries are scattered, and few thread blocks wait for latency, which a concurrent product doubles.
ColumnBlocks::ColumnBlocks(Context& context, const ExchangeContext& moving, std::int64_t right_hand_sides,
                           BlockOverlap overlap, std::unique_ptr<Exchange> first)
    : context_(context),
      type_(moving.type),
      columns_(right_hand_sides),
      width_(moving.width),
      own_(first->map().own()),
      overlap_(overlap),
      forked_(context.device()) {
  auto second = make_exchange(first->name(), moving, first->shared_map());
  slots_.push_back({std::move(first), Event(context.device()), Event(context.device())});
  slots_.push_back({std::move(second), Event(context.device()), Event(context.device())});
  context.communicator().run_agreed([&] {
    const std::int64_t bytes = own_ * columns_ * static_cast<std::int64_t>(size_of(type_));
    require_memory(context.device(), bytes, "this rank's entries of X");
    own_x_ = Buffer(context.device(), static_cast<std::size_t>(bytes));
    fill_bytes(own_x_.data(), 0, own_x_.bytes(), context.stream());  // on the host memory is taken when it is touched
    context.stream().synchronize();
  });
}

/// Copies the block's columns to where its exchange takes them from, and moves them.
void ColumnBlocks::start(std::int64_t block, Stream& stream) const {
  const std::size_t value = size_of(type_), row = static_cast<std::size_t>(columns_) * value,
                    part = static_cast<std::size_t>(width_) * value;
  copy_rows(part, own_, own_x_.as<char>() + static_cast<std::size_t>(block) * part, row, slot(block).exchange->local_x(),
            part, stream);
  slot(block).exchange->start(stream);
}

void ColumnBlocks::multiply_block(RowPlans rows, std::int64_t block, const Result& result, Stream& stream) const {
  void* first = static_cast<char*>(result.y) + static_cast<std::size_t>(block * width_) * size_of(sum_type(type_));
  for (const RowPlan& plan : rows)
    plan.multiply(result.alpha, slot(block).exchange->x(), result.beta, first, result.ldy, stream);
}

void ColumnBlocks::multiply_in_turn(RowPlans rows, const Result& result, Stream& stream) const {
  for (std::int64_t block = 0; block < blocks(); ++block) {
    start(block, stream);
    slot(block).exchange->finish(stream);
    multiply_block(rows, block, result, stream);
  }
}

void ColumnBlocks::multiply(RowPlans rows, double alpha, double beta, void* y, std::int64_t ldy, Stream& stream) const {
  const Result result{alpha, beta, y, ldy};
  if (overlap_ == BlockOverlap::no) return multiply_in_turn(rows, result, stream);
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
    multiply_block(rows, block, result, stream);
    slot(block).multiplied.record(stream);
    if (next < blocks()) finish(next);
  }
}

void ColumnBlocks::multiply_local(RowPlans rows, double alpha, double beta, void* y, std::int64_t ldy,
                                  Stream& stream) const {
  for (std::int64_t block = 0; block < blocks(); ++block) multiply_block(rows, block, {alpha, beta, y, ldy}, stream);
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
