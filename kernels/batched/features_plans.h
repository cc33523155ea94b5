// The plans behind make_feature_plan(), each in a file of its own.
#pragma once

#include "kernels/batched/features.h"

namespace shardmat {

std::unique_ptr<FeaturePlan> make_features_host(std::shared_ptr<const DeviceBatch> batch, std::int64_t in, std::int64_t out);
/// REQUIRES of both: f32, and at most FeaturePlan::most_features in and out. The second: weights_first().
std::unique_ptr<FeaturePlan> make_features_cuda(std::shared_ptr<const DeviceBatch> batch, std::int64_t in, std::int64_t out);
std::unique_ptr<FeaturePlan> make_features_weights_first(std::shared_ptr<const DeviceBatch> batch, std::int64_t in,
                                                         std::int64_t out);

}  // namespace shardmat
