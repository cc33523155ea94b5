// Choosing kernel and policy for a matrix: by the model (the first policy of the first kernel), or by measuring.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/matrix/csr.h"
#include "kernels/plan.h"

namespace shardmat {

struct PlanRequest {
  std::string kernel = "auto";   ///< a name of the registry, or "auto"
  std::string policy;            ///< "name=value,…" put over the kernel's default; needs a named kernel
  bool tune = false;             ///< measure every kernel and policy that the request leaves open
  double budget_seconds = 5;     ///< measuring stops starting new candidates after this long
};

/// One measured candidate.
struct Measurement {
  std::string kernel;
  std::string policy;
  double seconds = 0;  ///< median of one product
};

struct ChosenPlan {
  std::unique_ptr<Plan> plan;
  std::string why;                        ///< one line for the report
  std::vector<Measurement> measurements;  ///< fastest first; empty if nothing was measured
};

/// REQUIRES: a validated matrix. Throws Error(usage) for a wrong name or policy, Error(resources) with the bytes needed and
/// available *before* allocating if the matrix does not fit the device.
ChosenPlan choose_plan(const CsrView& matrix, ValueType type, const PlanRequest& request, Stream& stream);

}  // namespace shardmat
