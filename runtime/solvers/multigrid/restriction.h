// The way to the next level: Pᵀ·R. Each rank multiplies with its own rows of P; then the sums go to the ranks that have the
// coarse nodes. So vectors of the finer level stay where they are, also if the next level lies on fewer ranks.
//
// Threads: as Operator.
#pragma once

#include <optional>

#include "runtime/solvers/multigrid/node_rows.h"
#include "runtime/solvers/multigrid/operator.h"

namespace shardmat::multigrid {

class Restriction {
 public:
  /// `by_columns`: by_column(p). Collective; the same error on all ranks.
  Restriction(const NodeRows& p, const ByColumn& by_columns, Context& context, ValueType type, int columns);

  /// Of this rank's rows of P on a GPU, transposed; `fine`: the nodes of these rows, `coarse`: those of P's columns.
  Restriction(const blocks::BlockRows& transposed_p, const Nodes& fine, const Nodes& coarse, Context& context,
              ValueType type, int columns);

  void update(const blocks::BlockRows& transposed_p, Stream& stream) { here_.update(transposed_p, stream); }
  /// New values on the same pattern. Collective.
  void update(const NodeRows& p, const ByColumn& by_columns, Stream& stream);
  /// Row-major vectors as those of Operator. Collective.
  void multiply(const void* fine, void* coarse, Stream& stream) const;

  bool capturable() const { return here_.capturable() && (!sums_ || sums_->capturable()); }
  std::int64_t device_bytes() const;
  /// That a product moves at least on this rank.
  std::int64_t compulsory_bytes() const;

 private:
  Operator here_;                 ///< this rank's part of the sums
  std::optional<Operator> sums_;  ///< of the parts; none on one rank
};

}  // namespace shardmat::multigrid
