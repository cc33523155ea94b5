// One matrix in one type on one device, with everything that measuring products with many right-hand sides on it shares: X,
// which repeats a table so that no copy of it on the host is needed, Y, and what some rows of Y must be.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/choose/spmm_tuner.h"
#include "tools/bench/repeated_table.h"
#include "tools/bench/trial.h"

namespace shardmat::tools {

struct SpmmResult {
  std::string kernel, policy;  ///< policy: the tunables of format and kernel
  Timing timing;
  std::int64_t wrong = 0;  ///< entries of the rows looked at
  std::int64_t format_bytes = 0;
};

class SpmmTrial {
 public:
  /// The matrix and the stream live as long as this.
  SpmmTrial(const CsrView& matrix, ValueType type, Stream& stream, const TrialOptions& options);

  const CsrView& matrix() const { return matrix_; }
  ValueType type() const { return input_.type(); }
  SpmmTuner& tuner() { return tuner_; }
  /// Makes X and Y for a number of right-hand sides. Throws Error(resources) before allocating if they do not fit.
  void prepare(const RightHandSides& rhs);
  /// Multiplies into a Y of NaN, checks some of its rows, and times the product.
  SpmmResult measure(const SpmmPlan& plan);
  /// Bytes that a product has to move at least: CSR, the rows of X that columns touch, and Y.
  double least_bytes() const;

 private:
  std::int64_t leading(DenseOrder order, std::int64_t rows) const;
  std::int64_t count_wrong();

  const CsrView& matrix_;
  TrialOptions options_;
  ConversionInput input_;
  SpmmTuner tuner_;
  RepeatedTable table_;  ///< what X holds
  std::int64_t csr_bytes_ = 0;
  std::int64_t longest_row_ = 0;
  std::int64_t x_rows_ = 0;  ///< that columns touch
  RightHandSides rhs_;
  Buffer x_, y_;
};

}  // namespace shardmat::tools
