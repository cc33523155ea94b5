// Chooses kernel, layout and policy for a matrix: first by the model in cost_model.h, then by measuring its best candidates.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/choose/choice.h"
#include "kernels/matrix/csr.h"
#include "kernels/plan.h"

namespace shardmat {

struct ChosenPlan {
  std::unique_ptr<Plan> plan;
  Decision decision = Decision::asked;
  std::string why;                        ///< one line for the report
  std::vector<Prediction> predictions;    ///< cheapest first; empty if the kernel was named or is the only one
  std::vector<Measurement> measurements;  ///< fastest first; empty if nothing was measured
  double choosing_seconds = 0;            ///< predicting, measuring and converting what was not chosen
  double product_seconds = 0;             ///< of the chosen plan, measured or remembered; 0 if not known

  /// The time of choosing, in products of the chosen plan; 0 if the time of a product is not known.
  double choosing_products() const { return product_seconds > 0 ? choosing_seconds / product_seconds : 0; }
};

/// REQUIRES: a validated matrix. Throws Error(usage) for a wrong name or policy, Error(resources) with the bytes needed and
/// available *before* allocating if the matrix does not fit the device.
ChosenPlan choose_plan(const CsrView& matrix, ValueType type, const PlanRequest& request, Stream& stream);

}  // namespace shardmat
