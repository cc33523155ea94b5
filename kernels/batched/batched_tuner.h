// Choosing kernel and policy for a batch: by what each is expected to cost, then by measuring.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/batched/batched_spmm.h"
#include "kernels/measure.h"
#include "kernels/choose/tuner.h"

namespace shardmat {

struct BatchedRequest {
  std::string kernel = "auto";  ///< a name of the list, or "auto"
  std::string policy;           ///< "name=value,…" put over the kernel's default; needs a named kernel
  bool measure = true;          ///< on a GPU: measure what is left open; false: take what is expected to be fastest
  bool reproducible = false;    ///< only plans whose results are bit-identical from run to run
};

struct BatchedCandidate {
  const BatchedKernel* kernel;
  Policy policy;
  double cost;  ///< as BatchedKernel::estimate
};

/// What the request leaves open for this batch, cheapest first. Throws Error(usage) for a wrong name or policy, or if no
/// kernel takes the batch.
std::vector<BatchedCandidate> batched_candidates(const DeviceBatch& batch, std::int64_t columns,
                                                 const BatchedRequest& request);

struct ChosenBatchedPlan {
  std::unique_ptr<BatchedPlan> plan;  ///< in place
  Decision decision = Decision::asked;
  std::string why;                        ///< one line for the report
  std::vector<Measurement> measurements;  ///< fastest first; empty if nothing was measured
  double choosing_seconds = 0;
};

/// Throws Error(usage) for a wrong name or policy, or one that cannot take this batch. Measuring takes an X and a Y of the
/// device's memory; where they do not fit, nothing is measured.
ChosenBatchedPlan choose_batched_plan(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns,
                                      const BatchedRequest& request, Stream& stream);

/// Times one product. Short ones are repeated without a pause, in a graph, so that neither the host nor the resolution of
/// events shows, and the times are means over that; with options.flush each is timed alone from cold caches.
Timing time_batched(const BatchedPlan& plan, const void* x, std::int64_t ldx, void* y, std::int64_t ldy,
                    const Epilogue& epilogue, Stream& stream, const TimingOptions& options = {});

}  // namespace shardmat
