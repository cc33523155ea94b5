// The plans behind make_feature_plan(), each in a file of its own.
#pragma once

#include "kernels/batched/features.h"

namespace shardmat {

std::unique_ptr<FeaturePlan> make_features_host(std::shared_ptr<const DeviceBatch> batch, std::int64_t in, std::int64_t out);
/// REQUIRES of all: f32, and at most FeaturePlan::most_features in and out. Of the second and third: weights_first(); both
/// give the same bits.
std::unique_ptr<FeaturePlan> make_features_cuda(std::shared_ptr<const DeviceBatch> batch, std::int64_t in, std::int64_t out);
std::unique_ptr<FeaturePlan> make_features_weights_first(std::shared_ptr<const DeviceBatch> batch, std::int64_t in,
                                                         std::int64_t out);
/// REQUIRES: at most 512 rows of X and of Y for each multiprocessor. `patience`: how often a block looks for X·W of another
/// block before it computes it itself.
std::unique_ptr<FeaturePlan> make_features_tiles(std::shared_ptr<const DeviceBatch> batch, std::int64_t in, std::int64_t out,
                                                 int patience = 100);

/// True if the third is the fastest on a GPU with this many multiprocessors; then there are at most 384 rows for each.
bool divided_by_rows(const BatchOffsets& at, std::int64_t in, std::int64_t out, std::int64_t multiprocessors);
/// On the batch's GPU.
bool divided_by_rows(const DeviceBatch& batch, std::int64_t in, std::int64_t out);

}  // namespace shardmat
