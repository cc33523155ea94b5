// One iteration of the power method.
//
// Threads: as DistributedMatrix. add(), dots() and eigenvalue() are collective.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "comm/exchange/sum_over_ranks.h"
#include "kernels/vector.h"
#include "runtime/matrix/product.h"

namespace shardmat {

/// The step x ← A·x / ‖A·x‖ and what x and A·x tell about the eigenvalue, for PowerMethod and the timed iterations of
/// iterate(). x and y are this rank's rows of one column, apart from each other on the device, of the matrix's type.
class PowerStep {
 public:
  /// The product must outlive this object.
  explicit PowerStep(const Product& product);

  /// xᵀy and yᵀy on the device, in stream order. After a first call it can be recorded in a Graph.
  void add(const void* x, const void* y, Stream& stream);
  /// xᵀy and yᵀy on the host.
  std::pair<double, double> dots(const void* x, const void* y, Stream& stream);
  /// x ← y / ‖y‖, in stream order.
  void normalise(const void* y, void* x, Stream& stream);
  /// λ = xᵀy / xᵀx and the residual ‖y - λx‖ for y = A·x. y becomes y - λx.
  std::pair<double, double> eigenvalue(const void* x, void* y, Stream& stream);
  /// What sums over the ranks: SumOverRanks::name().
  std::string_view summed_by() const { return sum_.name(); }

 private:
  const Product& product_;
  SumOverRanks sum_;
  std::optional<DotProducts> products_;
  Buffer values_;
};

}  // namespace shardmat
