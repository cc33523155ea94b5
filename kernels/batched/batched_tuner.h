// Chooses kernel and policy for a batch: first by predicted cost, then by measuring.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/batched/batched_spmm.h"
#include "kernels/choose/tuner.h"
#include "kernels/measure.h"

namespace shardmat {

struct BatchedRequest {
  std::string kernel = "auto";  ///< a name in the list, or "auto"
  std::string policy;           ///< "name=value,…" replaces defaults of the kernel; needs a named kernel
  bool measure = true;          ///< on a GPU: measure the candidates; false: take the one predicted to be fastest
  bool reproducible = false;    ///< only plans whose results are bit-identical from run to run
};

struct BatchedCandidate {
  const BatchedKernel* kernel;
  Policy policy;
  double cost;  ///< from BatchedKernel::estimate
};

/// All candidates that the request allows for this batch, cheapest first. Throws Error(usage) for a wrong name or policy, or
/// if no kernel can multiply the batch.
std::vector<BatchedCandidate> batched_candidates(const DeviceBatch& batch, std::int64_t columns,
                                                 const BatchedRequest& request);

struct ChosenBatchedPlan {
  std::unique_ptr<BatchedPlan> plan;  ///< its lists are placed
  Decision decision = Decision::asked;
  std::string why;                        ///< one line for the report
  std::vector<Measurement> measurements;  ///< fastest first; empty if nothing was measured
  double choosing_seconds = 0;
};

/// Throws Error(usage) for a wrong name or policy, or for a kernel that cannot multiply this batch. Measuring needs device
/// memory for an X and a Y; if they do not fit, nothing is measured.
ChosenBatchedPlan choose_batched_plan(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns,
                                      const BatchedRequest& request, Stream& stream);

/// Times one product. Short products are repeated without a pause in a graph, so that neither the host nor the resolution of
/// events matters; times are then means over these repetitions. With options.flush, each product is timed alone with cold
/// caches.
Timing time_batched(const BatchedPlan& plan, const void* x, std::int64_t ldx, void* y, std::int64_t ldy,
                    const Epilogue& epilogue, Stream& stream, const TimingOptions& options = {});

}  // namespace shardmat
