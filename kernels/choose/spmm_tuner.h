// Choosing kernel, layout and policy for products with many right-hand sides: all that promise something are measured, on
// the matrix stored once for all counts of right-hand sides that are asked for.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/choose/tuner.h"
#include "kernels/conversion.h"
#include "kernels/measure.h"
#include "kernels/spmm.h"

namespace shardmat {

struct SpmmRequest {
  std::string kernel = "auto";  ///< a name of the list, or "auto"
  std::string policy;           ///< "name=value,…" put over the kernel's default; needs a named kernel
  bool measure = true;          ///< on a GPU: measure what is left open; false: take the first
  bool reproducible = false;    ///< only plans whose results are bit-identical from run to run
  double products = 2000;       ///< that are to come: what takes longer to make than it saves in so many is not chosen
  CacheFlush* flush = nullptr;  ///< runs before each measured product; null: caches stay warm
};

struct ChosenSpmmPlan {
  std::unique_ptr<SpmmPlan> plan;
  Decision decision = Decision::asked;
  std::string why;                        ///< one line for the report
  std::vector<Measurement> measurements;  ///< fastest first; empty if nothing was measured
  double choosing_seconds = 0;            ///< converting and measuring
  double product_seconds = 0;             ///< of the chosen plan if it was measured

  /// The time of choosing in products of the chosen plan; 0 if that is not known.
  double choosing_products() const { return product_seconds > 0 ? choosing_seconds / product_seconds : 0; }
};

class SpmmTuner {
 public:
  /// `input` lives as long as this. With `late`, storages are told (Storage::expect_late()), and plans beside which X
  /// cannot move count as taking so much longer.
  explicit SpmmTuner(ConversionInput& input, std::optional<LateX> late = {}) : input_(input), late_(late) {}

  /// Throws Error(usage) for a wrong name or policy, Error(resources) with the bytes needed and available *before*
  /// allocating if the matrix does not fit the device. Measuring takes an X and a Y of the device's memory; where they do
  /// not fit, nothing is measured.
  ChosenSpmmPlan choose(const RightHandSides& rhs, const SpmmRequest& request);

  /// A kernel's plan in the layout that choose() would take.
  std::unique_ptr<SpmmPlan> make(const SpmmKernel& kernel, const RightHandSides& rhs, const Policy& policy);
  /// The policies of a kernel on this matrix; none if it cannot take it, or its format does not suit.
  std::vector<Policy> policies(const SpmmKernel& kernel, const RightHandSides& rhs);

 private:
  struct Candidate {
    const SpmmKernel* kernel;
    Policy policy;
  };
  std::vector<Candidate> candidates(const RightHandSides& rhs, const SpmmRequest& request);
  std::shared_ptr<Storage> stored(const SpmmKernel& kernel);
  const Policy& layout_of(const std::string& format);
  /// The format would take more than CSR.
  bool grows(const std::string& format);

  ConversionInput& input_;
  std::optional<LateX> late_;
  // By format, so that what one count of right-hand sides found out serves the next.
  std::map<std::string, Policy> layouts_;
  std::map<std::string, bool> grows_;
  std::map<std::string, std::shared_ptr<Storage>> stored_;
  std::map<std::string, std::string> refused_;  ///< why a format is not there
};

}  // namespace shardmat
