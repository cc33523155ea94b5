// Products with several right-hand sides, Y = alpha·A·X + beta·Y: the layout of X and Y, and the plan. The matrix is stored
// as for one right-hand side, so plans of both kinds can share a storage.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/base/dense.h"
#include "kernels/plan.h"

namespace shardmat {

/// Entry (i, j) is at i·row + j·column.
struct DenseStrides {
  std::int64_t row, column;
};
constexpr DenseStrides strides(DenseOrder order, std::int64_t leading) {
  return order == DenseOrder::row_major ? DenseStrides{leading, 1} : DenseStrides{1, leading};
}

/// Number of right-hand sides and order of X and Y; the same for all products of a plan.
struct RightHandSides {
  std::int64_t count = 1;  ///< columns of X and Y
  DenseOrder x = DenseOrder::row_major, y = DenseOrder::row_major;
  bool operator==(const RightHandSides&) const = default;
};

/// Throws Error(usage) for a number of right-hand sides below 1 or too large for the kernels' indices.
void require_count(std::int64_t count);

/// May run any number of times, on one stream at a time.
class SpmmPlan {
 public:
  virtual ~SpmmPlan() = default;

  /// Y = alpha·A·X + beta·Y in stream order. X has A.cols rows of the storage's type; Y has A.rows rows of sum_type(); both
  /// have right_hand_sides().count columns and lie in memory of the storage's device. X and Y must not overlap. With
  /// beta = 0, Y is only written, so it may hold NaN. Gaps between rows or columns (a larger leading dimension) are neither
  /// read nor written. Throws Error(usage) for a leading dimension that is too small.
  void multiply(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy, Stream& stream) const;

  /// True if the same plan and X give a bit-identical Y in every run.
  virtual bool reproducible() const { return true; }

  /// Bytes of device memory that the plan holds, without the storage.
  virtual std::int64_t extra_bytes() const { return 0; }

  const RightHandSides& right_hand_sides() const { return rhs_; }
  const Storage& storage() const { return *storage_; }
  Storage& storage() { return *storage_; }
  const std::shared_ptr<Storage>& shared_storage() const { return storage_; }
  std::string kernel;  ///< name in the list
  Policy policy;       ///< the kernel's tunables
  /// True if a product can overlap the kernel before it: it does not copy X first and leaves that kernel room on the device.
  bool can_begin_early = false;
  /// True if products overlap the kernel before them, because Storage::expect_late() was called.
  bool begins_early() const { return can_begin_early && storage_->expects_late; }
  /// The tunables of format and kernel; empty if there are none.
  std::string tunables() const { return tunables_text(storage_->layout, policy); }

 protected:
  SpmmPlan(std::shared_ptr<Storage> storage, const RightHandSides& rhs) : storage_(std::move(storage)), rhs_(rhs) {}

 private:
  /// Called only if the matrix has rows and the number of right-hand sides is above 0.
  virtual void run(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy,
                   Stream& stream) const = 0;

  std::shared_ptr<Storage> storage_;
  RightHandSides rhs_;
};

}  // namespace shardmat
