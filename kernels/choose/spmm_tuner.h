// Chooses kernel, layout and policy for products with several right-hand sides, by measuring all promising kernels. The
// matrix is stored once in each format, for all numbers of right-hand sides.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/choose/spmm_registry.h"
#include "kernels/choose/tuner.h"
#include "kernels/conversion.h"
#include "kernels/measure.h"

namespace shardmat {

struct SpmmRequest {
  std::string kernel = "auto";  ///< a name in the list, or "auto"
  std::string policy;           ///< "name=value,…" replaces defaults of the kernel; needs a named kernel
  bool tune = false;            ///< measure further kernels, too (SpmmKernel::with_tune)
  bool measure = true;          ///< measure the candidates if that pays (pays_to_measure()); false: take the first
  bool reproducible = false;    ///< only plans whose results are bit-identical from run to run
  bool same_bits = false;       ///< as PlanRequest::same_bits
  double products = 2000;  ///< expected number of products (2000 if fewer): a plan must save in them what it takes to make
  StoredEntries storage = StoredEntries::all;
  CacheFlush* flush = nullptr;  ///< runs before each measured product; null: caches stay warm
};

struct ChosenSpmmPlan {
  std::unique_ptr<SpmmPlan> plan;
  Decision decision = Decision::asked;
  std::string why;                        ///< one line for the report
  std::vector<Measurement> measurements;  ///< fastest first; empty if nothing was measured
  double choosing_seconds = 0;            ///< converting and measuring
  double product_seconds = 0;             ///< of the chosen plan if it was measured

  /// The time of choosing, in products of the chosen plan; 0 if the time of a product is not known.
  double choosing_products() const { return product_seconds > 0 ? choosing_seconds / product_seconds : 0; }
};

class SpmmTuner {
 public:
  /// `input` must outlive this object. With `late`, storages expect late entries of X (Storage::expect_late()), and
  /// late.seconds are added to the time of plans that cannot overlap with the exchange.
  explicit SpmmTuner(ConversionInput& input, std::optional<LateX> late = {}) : input_(input), late_(late) {}

  /// Throws Error(usage) for a wrong name or policy; Error(resources) with the bytes needed and available, *before*
  /// allocating, if the matrix does not fit on the device. Measuring needs device memory for an X and a Y; if they do not
  /// fit, nothing is measured.
  ChosenSpmmPlan choose(const RightHandSides& rhs, const SpmmRequest& request);

  /// Makes a plan of this kernel, in the layout that choose() would take.
  std::unique_ptr<SpmmPlan> make(const SpmmKernel& kernel, const RightHandSides& rhs, const Policy& policy,
                                 bool same_bits = false);
  /// The policies of a kernel on this matrix; none if the kernel or its format cannot take the matrix.
  std::vector<Policy> policies(const SpmmKernel& kernel, const RightHandSides& rhs, bool same_bits = false);

 private:
  struct Candidate {
    const SpmmKernel* kernel;
    Policy policy;
  };
  std::vector<Candidate> candidates(const RightHandSides& rhs, const SpmmRequest& request);
  std::shared_ptr<Storage> stored(const SpmmKernel& kernel, bool same_bits);
  const Policy& layout_of(const std::string& format, bool same_bits);
  /// True if the format takes more bytes than CSR.
  bool grows(const std::string& format);

  ConversionInput& input_;
  std::optional<LateX> late_;
  // By format name and same_bits; shared by all numbers of right-hand sides.
  std::map<std::pair<std::string, bool>, Policy> layouts_;
  std::map<std::string, bool> grows_;
  std::map<std::pair<std::string, bool>, std::shared_ptr<Storage>> stored_;
  std::map<std::string, Error> refused_;  ///< why a format is not there
};

}  // namespace shardmat
