#include "kernels/batched/features.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/batched/features_plans.h"
#include "kernels/batched/operands.h"

namespace shardmat {
namespace {

constexpr std::int64_t kMost = 1 << 20;

constexpr std::int32_t kMostKept = 512;  ///< rows of a matrix, and of its X·W
// With a square W, X·W comes first from so many features on, in matrices that a thread block of a GPU takes at once but for
// the smallest: a block has many of those, and an H200 was 9 % slower.
constexpr std::int64_t kFewFeatures = 64;
constexpr std::int32_t kSmallRows = 32, kFewRows = 128;

}  // namespace

bool weights_first(const BatchOffsets& at, std::int64_t in, std::int64_t out) {
  const std::int32_t most = std::max(at.most_rows, at.most_cols);
  return out < in ? most <= kMostKept : out == in && in > kFewFeatures && most > kSmallRows && most <= kFewRows;
}

bool divided_by_rows(const BatchOffsets& at, std::int64_t in, std::int64_t out, std::int64_t multiprocessors) {
  // Measured on an H100 with rows of up to 5 entries on average, which come from the L2 cache, not from shared memory.
  constexpr std::int64_t kMostOut = 64, kEntriesOfRow = 5;
  constexpr std::int64_t kManyRows = 384, kSomeRows = 192, kFewRowsOfAll = 128;  // for each multiprocessor
  const std::int32_t most = std::max(at.most_rows, at.most_cols);
  const std::int64_t rows = std::max(at.rows(), at.cols());
  if (!weights_first(at, in, out) || out > kMostOut || most <= kSmallRows || at.nnz() > kEntriesOfRow * at.rows())
    return false;
  // A thread block takes matrices of few rows at once; that is slower only if many features become few.
  if (most <= kFewRows) return in > kFewFeatures && 2 * out <= kMostOut && rows <= kFewRowsOfAll * multiprocessors;
  return rows <= (in < kFewFeatures ? kSomeRows : kManyRows) * multiprocessors;
}

void FeaturePlan::multiply(const void* x, std::int64_t ldx, const void* w, std::int64_t ldw, void* y, std::int64_t ldy,
                           const Epilogue& epilogue, Stream& stream) const {
  batched::require_leading(ldx, in_, "X");
  batched::require_leading(ldw, out_, "W");
  batched::require_leading(ldy, out_, "Y");
  require_placed();
  if (batch_->at.rows() > 0) run(x, ldx, w, ldw, y, ldy, epilogue, stream);
}

std::unique_ptr<FeaturePlan> make_feature_plan(std::shared_ptr<const DeviceBatch> batch, std::int64_t in, std::int64_t out) {
  if (std::min(in, out) < 1 || std::max(in, out) > kMost)
    throw Error(ErrorKind::usage, fmt::format("{} features in and {} out; there must be 1 to {} of each", in, out, kMost));
  if (batch->format != BatchFormat::csr)
    throw Error(ErrorKind::usage, "feature products take batches in compressed rows; this one is in coordinates");
  if (batch->device.backend == Backend::host) return make_features_host(std::move(batch), in, out);
#ifdef SHARDMAT_HAVE_CUDA
  if (batch->type != ValueType::f32 || std::max(in, out) > FeaturePlan::most_features)
    throw Error(
        ErrorKind::usage,
        fmt::format("feature products on a GPU take f32 and up to {} features, not {} and {} to {}; multiply X and W "
                    "with a dense library, and A with the result by a batched plan",
                    FeaturePlan::most_features, name(batch->type), in, out));
  if (divided_by_rows(*batch, in, out)) return make_features_tiles(std::move(batch), in, out);
  if (weights_first(batch->at, in, out)) return make_features_weights_first(std::move(batch), in, out);
  return make_features_cuda(std::move(batch), in, out);
#else
  throw Error(ErrorKind::internal, "a batch on a GPU in a build without CUDA");
#endif
}

}  // namespace shardmat
