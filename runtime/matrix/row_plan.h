// A plan for a block of rows: a kernel on a stored format, for one or several right-hand sides, and what the report says
// about this choice.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kernels/choose/spmm_tuner.h"
#include "kernels/choose/tuner.h"

namespace shardmat {

class RowPlan {
 public:
  /// A plan for the rows of a rank from first_row on.
  RowPlan(std::int64_t first_row, ChosenPlan chosen) : first_row_(first_row), width_(1), chosen_(std::move(chosen)) {}
  /// The same for `width` right-hand sides, X and Y row-major.
  RowPlan(std::int64_t first_row, std::int64_t width, ChosenSpmmPlan chosen)
      : first_row_(first_row), width_(width), chosen_(std::move(chosen)) {}

  std::int64_t first_row() const { return first_row_; }
  const Storage& storage() const { return *shared_storage(); }
  const std::shared_ptr<Storage>& shared_storage() const;
  /// The same kernel and policy on another storage of the same rows, format and layout.
  void move_to(const std::shared_ptr<Storage>& storage, Stream& stream);
  /// True if the product may begin while entries of x still arrive (Storage::expect_late()).
  bool begins_early() const;

  /// Y = alpha·A·X + beta·Y in stream order; Y has all rows of the rank, `ldy` values apart (1 for one right-hand side).
  void multiply(double alpha, const void* x, double beta, void* y, std::int64_t ldy, Stream& stream) const;
  /// As Plan::dot_parts() and Plan::multiply_with_dot(); 0 parts for several right-hand sides.
  std::int64_t dot_parts() const;
  void multiply_with_dot(const void* x, const void* own, void* y, double* parts, Stream& stream) const;
  /// The least number of bytes that a product moves, without X: those of the format, and Y once (twice if beta is not 0).
  std::int64_t compulsory_bytes(double beta) const;
  /// Device memory of the plan, without the storage.
  std::int64_t extra_bytes() const;
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
  double choosing_products() const;  ///< choosing_seconds() divided by the time of one product; 0 if not known

 private:
  std::int64_t first_row_, width_;
  std::variant<ChosenPlan, ChosenSpmmPlan> chosen_;
};

}  // namespace shardmat
