// Choosing kernel, layout and policy for a matrix: by the model of cost_model.h, then by measuring the few that it holds for
// the best.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "kernels/matrix/csr.h"
#include "kernels/plan.h"

namespace shardmat {

struct PlanRequest {
  std::string kernel = "auto";  ///< a name of the registry, or "auto"
  std::string policy;           ///< "name=value,…" put over the kernel's default; needs a named kernel
  bool tune = false;            ///< measure every kernel, layout and policy that the request leaves open
  bool measure = true;          ///< auto on a GPU: measure the best of the model; false: take its first
  bool reproducible = false;    ///< only plans whose results are bit-identical from run to run
  double products = 2000;       ///< that are to come at least; see SpmmRequest
  double budget_seconds = 0;    ///< measuring starts no new candidate after this long; 0: some 150 products, tune: 5 s
};

enum class Decision { asked, only, model, measured, remembered };
std::string name(Decision decision);

/// What the model expects of one candidate.
struct Prediction {
  std::string kernel;
  std::string policy;  ///< tunables of layout and kernel
  double bytes = 0;    ///< a copy of this many would take as long as one product (cost_model.h)
};

/// One measured candidate.
struct Measurement {
  std::string kernel;
  std::string policy;
  double seconds = 0;  ///< median of one product
};

/// How a choice came about.
struct Choice {
  Decision decision = Decision::asked;
  std::string why;  ///< one line for the report
};
/// Of one among so many candidates, measured with `seconds` if any was; `named`: their kernel was asked for. `unmeasured`
/// words what was taken where nothing was measured. Sorts the measurements, fastest first.
Choice describe_choice(std::vector<Measurement>& measurements, double seconds, bool named, std::size_t candidates,
                       const char* unmeasured);

struct ChosenPlan {
  std::unique_ptr<Plan> plan;
  Decision decision = Decision::asked;
  std::string why;                        ///< one line for the report
  std::vector<Prediction> predictions;    ///< cheapest first; empty if the kernel was named or is the only one
  std::vector<Measurement> measurements;  ///< fastest first; empty if nothing was measured
  double choosing_seconds = 0;            ///< predicting, measuring and converting what was not chosen
  double product_seconds = 0;             ///< of the chosen plan, measured or remembered; 0 if not known

  /// The time of choosing in products of the chosen plan; 0 if that is not known.
  double choosing_products() const { return product_seconds > 0 ? choosing_seconds / product_seconds : 0; }
};

/// REQUIRES: a validated matrix. Throws Error(usage) for a wrong name or policy, Error(resources) with the bytes needed and
/// available *before* allocating if the matrix does not fit the device.
ChosenPlan choose_plan(const CsrView& matrix, ValueType type, const PlanRequest& request, Stream& stream);

}  // namespace shardmat
