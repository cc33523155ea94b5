// Batched products of many small sparse matrices with dense ones, Yᵢ = act(alpha·Aᵢ·Xᵢ + beta·Yᵢ + bias), all matrices of a
// batch in one launch (Nagasaka, Nukada, Kojima and Matsuoka, "Batched sparse matrix-matrix multiplication for accelerating
// graph convolutional networks", CCGrid'19). A plan says how the work is spread; every kernel is one line in
// batched_spmm.cpp. With one column a product is a batched SpMV.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/batched/device_batch.h"
#include "kernels/batched/work_lists.h"
#include "kernels/policy.h"

namespace shardmat {

/// What is done with a sum before it is written to Y: act(alpha·sum + beta·y + bias[column]).
struct Epilogue {
  double alpha = 1;
  double beta = 0;             ///< 0: Y is only written, so it may hold NaN
  const void* bias = nullptr;  ///< one entry for each column, of sum_type(), in device memory; null: no bias
  bool relu = false;           ///< act(v) = max(v, 0), NaN stays NaN; else act(v) = v
};

/// May run any number of times, on one stream at a time.
class BatchedPlan : public WorkLists {
 public:
  virtual ~BatchedPlan() = default;

  /// X is stacked and row-major: batch().at.cols() rows of columns() entries of the batch's type, ldx entries apart. Y has
  /// batch().at.rows() rows of sum_type(), ldy entries apart. X and Y must not overlap. In stream order; does not allocate,
  /// copy or wait. Gaps between rows are neither read nor written. Throws Error(usage) for a leading dimension below
  /// columns().
  void multiply(const void* x, std::int64_t ldx, void* y, std::int64_t ldy, const Epilogue& epilogue, Stream& stream) const;

  /// True if the same plan and X give a bit-identical Y in every run.
  virtual bool reproducible() const { return true; }

  const DeviceBatch& batch() const { return *batch_; }
  std::int64_t columns() const { return columns_; }
  std::string kernel;  ///< name in the list
  Policy policy;       ///< the kernel's tunables

 protected:
  BatchedPlan(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns)
      : batch_(std::move(batch)), columns_(columns) {}

 private:
  /// Called only if the batch has rows, when the lists are in place.
  virtual void run(const void* x, std::int64_t ldx, void* y, std::int64_t ldy, const Epilogue& epilogue,
                   Stream& stream) const = 0;

  std::shared_ptr<const DeviceBatch> batch_;
  std::int64_t columns_;
};

struct BatchedKernel {
  std::string_view name;
  BatchFormat format;
  Backend backend;
  std::string_view help;
  /// True if the automatic choice may take the kernel; other kernels run only if named.
  bool automatic = false;
  /// Policies worth measuring, the default first; none if the kernel cannot multiply this batch.
  std::vector<Policy> (*policies)(const DeviceBatch& batch, std::int64_t columns);
  /// The predicted cost of a product in bytes: a copy on the device of this many bytes would take the same time.
  double (*estimate)(const DeviceBatch& batch, std::int64_t columns, const Policy& policy);
  /// Throws Error(usage) for a policy value that the kernel does not support.
  std::unique_ptr<BatchedPlan> (*make)(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns, const Policy& policy);
};

std::span<const BatchedKernel> batched_kernels();

/// For an unknown name throws Error(usage), which suggests the nearest name or says which backend or format has the kernel.
const BatchedKernel& find_batched_kernel(std::string_view name, Backend backend);

/// Calls kernel.make() and sets the plan's names; the lists are not yet placed. Throws Error(usage) if backend or format of
/// the batch are not those of the kernel, or for a number of columns below 1.
std::unique_ptr<BatchedPlan> make_batched_plan(const BatchedKernel& kernel, std::shared_ptr<const DeviceBatch> batch,
                                               std::int64_t columns, const Policy& policy);

}  // namespace shardmat
