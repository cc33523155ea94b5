// Products with many right-hand sides, Y = alpha·A·X + beta·Y: how the dense operands lie, a plan for such products, and
// every kernel that makes one, each one line in spmm.cpp. The matrix is stored as for one right-hand side (registry.h), so a
// storage may serve plans of both kinds.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

/// What stays the same over the products of a plan.
struct RightHandSides {
  std::int64_t count = 1;  ///< columns of X and Y
  DenseOrder x = DenseOrder::row_major, y = DenseOrder::row_major;
  bool operator==(const RightHandSides&) const = default;
};

/// Throws Error(usage) for a count of right-hand sides below 1 or beyond what kernels index.
void require_count(std::int64_t count);

/// Ready to run any number of times, by one stream at a time.
class SpmmPlan {
 public:
  virtual ~SpmmPlan() = default;

  /// Y = alpha·A·X + beta·Y in stream order. X has the matrix's cols rows and the storage's type, Y its rows and the type of
  /// sums (sum_type()), both right_hand_sides().count columns, in memory of its device; they must not overlap. With beta =
  /// 0, Y is only written, so it may hold NaN. What lies between the rows or columns that a leading dimension skips is
  /// neither read nor written. Throws Error(usage) for a leading dimension shorter than what it has to span.
  void multiply(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy, Stream& stream) const;

  /// True if the same plan and X give a bit-identical Y in every run.
  virtual bool reproducible() const { return true; }

  /// Bytes of device memory that the plan holds beside the storage.
  virtual std::int64_t extra_bytes() const { return 0; }

  const RightHandSides& right_hand_sides() const { return rhs_; }
  const Storage& storage() const { return *storage_; }
  Storage& storage() { return *storage_; }
  const std::shared_ptr<Storage>& shared_storage() const { return storage_; }
  std::string kernel;  ///< name in the list
  Policy policy;       ///< the kernel's tunables
  /// Its products can begin beside the kernel before them: they do not copy X first and leave that kernel room.
  bool can_begin_early = false;
  /// They do so, because the storage expects late entries of X (Storage::expect_late()).
  bool begins_early() const { return can_begin_early && storage_->expects_late; }
  /// The tunables of format and kernel; empty if there are none.
  std::string tunables() const { return tunables_text(storage_->layout, policy); }

 protected:
  SpmmPlan(std::shared_ptr<Storage> storage, const RightHandSides& rhs) : storage_(std::move(storage)), rhs_(rhs) {}

 private:
  /// Called for a matrix with rows and a count above 0.
  virtual void run(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy,
                   Stream& stream) const = 0;

  std::shared_ptr<Storage> storage_;
  RightHandSides rhs_;
};

struct SpmmKernel {
  std::string_view name;
  std::string_view format;  ///< registry.h
  Backend backend;
  std::string_view help;
  /// Policies worth measuring; the first is the model's choice.
  std::vector<Policy> (*policies)(const Storage& storage, const RightHandSides& rhs);
  bool (*supports)(const Storage& storage, const RightHandSides& rhs);
  /// Throws Error(usage) for a policy value the kernel does not have.
  std::unique_ptr<SpmmPlan> (*make)(std::shared_ptr<Storage> storage, const RightHandSides& rhs, const Policy& policy,
                                    Stream& stream);
  /// True if the automatic choice should measure the kernel on such a matrix; null: it runs when named only.
  bool (*promising)(ConversionInput& input, const Policy& layout);
};

std::span<const SpmmKernel> spmm_kernels();

/// As find_kernel().
const SpmmKernel& find_spmm_kernel(std::string_view name, Backend backend);

/// kernel.make() with the names filled in.
std::unique_ptr<SpmmPlan> make_spmm_plan(const SpmmKernel& kernel, std::shared_ptr<Storage> storage,
                                         const RightHandSides& rhs, const Policy& policy, Stream& stream);

}  // namespace shardmat
