#include "runtime/matrix/all_at_once.h"

namespace shardmat {

void AllAtOnce::multiply(RowPlans rows, double alpha, double beta, void* y, std::int64_t ldy, Stream& stream) const {
  if (rows.size() == 1) {
    move(stream);
    return multiply_local(rows, alpha, beta, y, ldy, stream);
  }
  Stream& moving = context_.exchange_stream();
  forked_.record(stream);
  moving.wait_for(forked_);
  exchange_->start(moving);
  rows[0].multiply(alpha, exchange_->x(), beta, y, ldy, stream);
  exchange_->finish(moving);
  rows[1].multiply(alpha, exchange_->x(), beta, y, ldy, moving);  // may run while the first block ends
  joined_.record(moving);
  stream.wait_for(joined_);
}

void AllAtOnce::multiply_local(RowPlans rows, double alpha, double beta, void* y, std::int64_t ldy, Stream& stream) const {
  for (const RowPlan& block : rows) block.multiply(alpha, exchange_->x(), beta, y, ldy, stream);
}

void AllAtOnce::move(Stream& stream) const {
  exchange_->start(stream);
  exchange_->finish(stream);
}

}  // namespace shardmat
