// Products with the transpose of a stored matrix, Y = alpha·Aᵀ·X + beta·Y: from the values that products with A read,
// without a second copy of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "kernels/plan.h"

namespace shardmat {

/// X and Y of a product: row-major, `columns` right-hand sides. X has the rows of A. Y has `entries` rows, at least as many
/// as there are columns with a nonzero.
struct TransposeShape {
  std::int64_t entries = 0, columns = 1;
};

/// May run any number of times, on one stream at a time.
class TransposePlan {
 public:
  virtual ~TransposePlan() = default;

  /// Y = alpha·Aᵀ·X + beta·Y in stream order. X and Y are of the storage's type, f64 or f32, in memory of its device; their
  /// rows begin `ldx` and `ldy` values apart. They must not overlap. With beta = 0, Y is only written. Each entry of Y is
  /// summed in a fixed order, so that the same plan and X give the same bits, and each right-hand side those of a plan for
  /// one. New values of the storage are used from then on.
  virtual void multiply(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy,
                        Stream& stream) const = 0;

  /// Bytes of device memory that the plan holds, without the storage and what plans for other widths share.
  virtual std::int64_t extra_bytes() const = 0;

  const Storage& storage() const { return *storage_; }
  const TransposeShape& shape() const { return shape_; }
  /// How it multiplies, for reports.
  virtual std::string_view name() const = 0;

 protected:
  TransposePlan(std::shared_ptr<const Storage> storage, const TransposeShape& shape)
      : storage_(std::move(storage)), shape_(shape) {}

 private:
  std::shared_ptr<const Storage> storage_;
  TransposeShape shape_;
};

}  // namespace shardmat
