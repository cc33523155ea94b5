// Batched products of many small sparse matrices with dense ones, Yᵢ = act(alpha·Aᵢ·Xᵢ + beta·Yᵢ + bias), all matrices of a
// batch in one launch (Nagasaka, Nukada, Kojima and Matsuoka, "Batched sparse matrix-matrix multiplication for accelerating
// graph convolutional networks", CCGrid'19). A plan holds how the work is spread; every kernel is one line in
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

/// What becomes of a sum on its way into Y: act(alpha·sum + beta·y + bias[column]).
struct Epilogue {
  double alpha = 1;
  double beta = 0;             ///< 0: Y is only written, so it may hold NaN
  const void* bias = nullptr;  ///< one entry a column, of the type of sums, in memory of the device; null: none
  bool relu = false;           ///< act(v) = max(v, 0), NaN stays NaN; else act(v) = v
};

/// Ready to run any number of times, by one stream at a time.
class BatchedPlan : public WorkLists {
 public:
  virtual ~BatchedPlan() = default;

  /// X is stacked, row-major, batch().at.cols() rows of columns() entries of the batch's type, ldx apart; Y likewise,
  /// at.rows() rows of the type of sums (sum_type()). They must not overlap. In stream order; nothing is allocated, copied
  /// or waited for. What a leading dimension skips is neither read nor written. Throws Error(usage) for one shorter than
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
  /// Called for a batch with rows, when the lists are in place.
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
  /// True if the automatic choice may take it; others run when named.
  bool automatic;
  /// Policies worth measuring, the model's choice first; none if the kernel cannot take this batch.
  std::vector<Policy> (*policies)(const DeviceBatch& batch, std::int64_t columns);
  /// What a product is expected to cost, in bytes that a copy on the device would move in the same time.
  double (*estimate)(const DeviceBatch& batch, std::int64_t columns, const Policy& policy);
  /// Throws Error(usage) for a policy value the kernel does not have.
  std::unique_ptr<BatchedPlan> (*make)(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns, const Policy& policy);
};

std::span<const BatchedKernel> batched_kernels();

/// Throws Error(usage) with the nearest right name, or naming the backend or format that has the kernel.
const BatchedKernel& find_batched_kernel(std::string_view name, Backend backend);

/// kernel.make() with the names filled in, not yet placed. Throws Error(usage) if the batch is on another backend or in
/// another format than the kernel's, or for a number of columns below 1.
std::unique_ptr<BatchedPlan> make_batched_plan(const BatchedKernel& kernel, std::shared_ptr<const DeviceBatch> batch,
                                               std::int64_t columns, const Policy& policy);

}  // namespace shardmat
