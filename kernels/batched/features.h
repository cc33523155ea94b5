// Graph convolutions of a whole batch in one launch, Yᵢ = act(alpha·Aᵢ·Xᵢ·W + beta·Yᵢ + bias) (the layer of T. N. Kipf and
// M. Welling, "Semi-supervised classification with graph convolutional networks", ICLR 2017, eq. 2). Either the product with
// the weights W begins as soon as some rows of A·X are computed. Or X·W comes first, which pays if W has fewer columns than
// rows: of a whole matrix it is kept close by; of large matrices on a GPU it goes through the plan's work memory.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "kernels/batched/batched_spmm.h"

namespace shardmat {

/// May run any number of times, on one stream at a time, once its lists are in place.
class FeaturePlan : public WorkLists {
 public:
  static constexpr std::int64_t most_features = 128;  ///< in or out, on a GPU

  virtual ~FeaturePlan() = default;

  /// X is stacked and row-major: batch().at.cols() rows of in() features, ldx entries apart. W is in() × out(), its rows ldw
  /// entries apart. Y has batch().at.rows() rows of out() features, ldy entries apart. X and W have the batch's type, Y and
  /// the bias sum_type(). Y overlaps neither X nor W. In stream order; does not allocate, copy or wait. On a GPU the product
  /// with W runs on tensor cores in three terms of TF32, with errors of the order of f32 errors. Infinite features or
  /// weights, and those that TF32 rounds to infinity (3.402e38 and more), then give NaN in all entries of Y that they
  /// affect. The same plan and operands give a bit-identical Y in every run. Throws Error(usage) for a leading dimension
  /// that is too small, and on a GPU for rows of X 2 GiB or more apart.
  void multiply(const void* x, std::int64_t ldx, const void* w, std::int64_t ldw, void* y, std::int64_t ldy,
                const Epilogue& epilogue, Stream& stream) const;

  const DeviceBatch& batch() const { return *batch_; }
  std::int64_t in() const { return in_; }
  std::int64_t out() const { return out_; }

 protected:
  FeaturePlan(std::shared_ptr<const DeviceBatch> batch, std::int64_t in, std::int64_t out)
      : batch_(std::move(batch)), in_(in), out_(out) {}

 private:
  /// Called only if the batch has rows, when the lists are in place.
  virtual void run(const void* x, std::int64_t ldx, const void* w, std::int64_t ldw, void* y, std::int64_t ldy,
                   const Epilogue& epilogue, Stream& stream) const = 0;

  std::shared_ptr<const DeviceBatch> batch_;
  std::int64_t in_, out_;
};

/// True if Y is A·(X·W), false if it is (A·X)·W; bits of Y depend on it. Depends on the shapes of W and of the matrices
/// only.
bool weights_first(const BatchOffsets& at, std::int64_t in, std::int64_t out);

/// Throws Error(usage) for a batch in coordinates, and for numbers of features below 1 or above 2²⁰. On a GPU also for types
/// other than f32, for more than most_features, and if device or build has a compute capability below 8.0: then compute X·W
/// with a dense library and A·(X·W) with a BatchedPlan.
std::unique_ptr<FeaturePlan> make_feature_plan(std::shared_ptr<const DeviceBatch> batch, std::int64_t in, std::int64_t out);

}  // namespace shardmat
