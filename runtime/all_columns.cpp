#include "runtime/all_columns.h"

namespace shardmat {

void AllColumns::multiply(std::span<const RowBlock> rows, double alpha, double beta, void* y, Stream& stream) const {
  if (rows.size() == 1) {
    move(stream);
    return multiply_local(rows, alpha, beta, y, stream);
  }
  Stream& moving = context_.exchange_stream();
  forked_.record(stream);
  moving.wait_for(forked_);
  exchange_->start(moving);
  rows[0].multiply(alpha, exchange_->x(), beta, y, columns_, stream);
  exchange_->finish(moving);
  rows[1].multiply(alpha, exchange_->x(), beta, y, columns_, moving);  // beside the end of the first, too
  joined_.record(moving);
  stream.wait_for(joined_);
}

void AllColumns::multiply_local(std::span<const RowBlock> rows, double alpha, double beta, void* y, Stream& stream) const {
  for (const RowBlock& block : rows) block.multiply(alpha, exchange_->x(), beta, y, columns_, stream);
}

void AllColumns::move(Stream& stream) const {
  exchange_->start(stream);
  exchange_->finish(stream);
}

}  // namespace shardmat
