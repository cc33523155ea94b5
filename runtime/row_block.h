// Consecutive rows of a rank, stored and planned by themselves: one plan for one right-hand side or for several, and all
// that a report says about it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kernels/spmm_tuner.h"
#include "kernels/tuner.h"

namespace shardmat {

struct PlanCache;

class RowBlock {
 public:
  /// Rows first_row … of the rank. Chooses kernel, layout and policy: for one right-hand side as choose_remembered_plan(),
  /// for several as SpmmTuner::choose(), X and Y row-major. Throws as these.
  RowBlock(std::int64_t first_row, const CsrView& rows, ValueType type, std::int64_t right_hand_sides,
           const PlanRequest& request, const PlanCache& cache, std::optional<LateX> late, Stream& stream);

  std::int64_t first_row() const { return first_row_; }
  std::int64_t end_row() const { return first_row_ + storage().rows; }
  const Storage& storage() const;
  /// Products begin beside the kernel that brings what comes late (Storage::expect_late()).
  bool begins_early() const;

  /// Y = alpha·A·X + beta·Y in stream order; Y is that of the whole rank, its rows `ldy` values apart. For one right-hand
  /// side that is 1.
  void multiply(double alpha, const void* x, double beta, void* y, std::int64_t ldy, Stream& stream) const;
  /// Bytes the product must move at least, but for those of X: the format's, and Y once (twice if beta is not 0).
  std::int64_t compulsory_bytes(double beta) const;
  /// Device memory of storage and plan.
  std::int64_t device_bytes() const;
  bool reproducible() const;

  // What was chosen, and why.
  const std::string& kernel() const;
  std::string tunables() const;
  /// "csr_vector threads_per_row=8".
  std::string kernel_and_tunables() const;
  const std::string& why() const;
  Decision decision() const;
  const std::vector<Measurement>& measurements() const;
  std::vector<Prediction> predictions() const;  ///< none for several right-hand sides
  double choosing_seconds() const;
  double choosing_products() const;  ///< the same in products; 0 if not known

 private:
  std::int64_t first_row_, width_;
  std::variant<ChosenPlan, ChosenSpmmPlan> chosen_;
};

}  // namespace shardmat
