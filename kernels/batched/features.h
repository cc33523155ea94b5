// Graph convolutions of a whole batch in one launch, Yᵢ = act(alpha·Aᵢ·Xᵢ·W + beta·Yᵢ + bias): the product with the weights
// W begins as soon as some rows of A·X are there, so that these never go to memory (the layer of T. N. Kipf and M. Welling,
// "Semi-supervised classification with graph convolutional networks", ICLR 2017, eq. 2). That pays where W has no fewer
// columns than rows; with fewer, X·W is the smaller matrix, and two products, that first, are faster.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "kernels/batched/batched_spmm.h"

namespace shardmat {

/// Ready to run any number of times, by one stream at a time, once its lists are in place.
class FeaturePlan : public WorkLists {
 public:
  static constexpr std::int64_t most_features = 128;  ///< in or out, on a GPU

  virtual ~FeaturePlan() = default;

  /// X is stacked, row-major, batch().at.cols() rows of in() features, ldx apart; W is in() × out(), rows ldw apart; Y has
  /// at.rows() rows of out() features, ldy apart. X and W are of the batch's type, Y and the bias of the type of sums
  /// (sum_type()). Y overlaps neither. In stream order; nothing is allocated, copied or waited for.
  /// On a GPU the product with W runs on tensor cores in three terms of TF32, with errors of the order of f32's; there an
  /// infinite feature or weight, or one that TF32 rounds to infinity (3.402e38 and more), makes NaN of what it touches. The
  /// same plan and operands give a bit-identical Y in every run. Throws Error(usage) for a leading dimension that is too
  /// short, and on a GPU for rows of X 2 GiB apart or more.
  void multiply(const void* x, std::int64_t ldx, const void* w, std::int64_t ldw, void* y, std::int64_t ldy,
                const Epilogue& epilogue, Stream& stream) const;

  const DeviceBatch& batch() const { return *batch_; }
  std::int64_t in() const { return in_; }
  std::int64_t out() const { return out_; }

 protected:
  FeaturePlan(std::shared_ptr<const DeviceBatch> batch, std::int64_t in, std::int64_t out)
      : batch_(std::move(batch)), in_(in), out_(out) {}

 private:
  /// Called for a batch with rows, when the lists are in place.
  virtual void run(const void* x, std::int64_t ldx, const void* w, std::int64_t ldw, void* y, std::int64_t ldy,
                   const Epilogue& epilogue, Stream& stream) const = 0;

  std::shared_ptr<const DeviceBatch> batch_;
  std::int64_t in_, out_;
};

/// Throws Error(usage) for a batch in coordinates or numbers of features below 1 or above 2²⁰; on a GPU also for types other
/// than f32 or more than most_features, for which X·W is to be made with a dense library first and A·(X·W) with a
/// BatchedPlan, and on those of compute capability below 8.0 or in a build for such.
std::unique_ptr<FeaturePlan> make_feature_plan(std::shared_ptr<const DeviceBatch> batch, std::int64_t in, std::int64_t out);

}  // namespace shardmat
