#include "kernels/spmm_plan.h"

#include <fmt/format.h>

#include "kernels/base/error.h"

namespace shardmat {
namespace {

void require_span(std::int64_t leading, std::int64_t rows, std::int64_t columns, DenseOrder order, const char* what) {
  const bool by_rows = order == DenseOrder::row_major;
  const std::int64_t least = by_rows ? columns : rows;
  if (leading < least)
    throw Error(ErrorKind::usage, fmt::format("the leading dimension of {} is {}, but its {} have {} entries", what, leading,
                                              by_rows ? "rows" : "columns", least));
}

}  // namespace

void require_count(std::int64_t count) {
  constexpr std::int64_t kMost = 1 << 20;
  if (count < 1 || count > kMost)
    throw Error(ErrorKind::usage, fmt::format("a product with {} right-hand sides; there must be 1 to {}", count, kMost));
}

void SpmmPlan::multiply(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy,
                        Stream& stream) const {
  require_span(ldx, storage_->cols, rhs_.count, rhs_.x, "X");
  require_span(ldy, storage_->rows, rhs_.count, rhs_.y, "Y");
  if (storage_->rows > 0 && rhs_.count > 0) run(alpha, x, ldx, beta, y, ldy, stream);
}

}  // namespace shardmat
