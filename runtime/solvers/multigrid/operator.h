// A matrix of a hierarchy on the device: the rows as the set-up has them, in the type of the hierarchy, and their product.
// Nothing is chosen by measuring, and no copy is made on the way: a cycle multiplies each matrix some hundred times at most.
//
// Threads: as Product. What is collective says so.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "comm/exchange/exchange.h"
#include "kernels/blocks/block_product.h"
#include "kernels/blocks/columns_product.h"
#include "kernels/plan.h"
#include "kernels/spmm_plan.h"
#include "runtime/context/context.h"
#include "runtime/solvers/multigrid/node_rows.h"

namespace shardmat::multigrid {

class Operator {
 public:
  /// For `columns` right-hand sides in `type`. Collective; the same error on all ranks.
  Operator(const NodeRows& rows, Context& context, ValueType type, int columns);

  /// Of rows on GPUs. `cols`: the nodes of the columns; `square`: those of the rows, too. Collective; the same error on all
  /// ranks. In f16 a square matrix keeps its product with `modes` (blocks::BlockProduct), and others are in f32.
  /// REQUIRES: in f16, one column and one rank.
  Operator(const blocks::BlockRows& rows, const Nodes& cols, bool square, Context& context, ValueType type, int columns,
           const Buffer* modes = nullptr);

  /// New values on the same pattern. Not collective.
  void update(const NodeRows& rows, Stream& stream);
  void update(const blocks::BlockRows& rows, Stream& stream);

  /// Row-major vectors of sum_type(), nodes in the order of NodeRows: Y = alpha·A·X + beta·Y in stream order. Collective.
  void multiply(double alpha, const void* x, double beta, void* y, Stream& stream) const;
  /// The same for the X in x().
  void multiply(double alpha, double beta, void* y, Stream& stream) const;
  /// The same for the X in x(), and then a step of a smoother: x() becomes its e, and step.e is not looked at. Not
  /// collective. REQUIRES: takes_steps().
  void multiply(blocks::SmootherStep step, Stream& stream) const;
  /// A product may go together with what a smoother does behind it: no X moves, and there is one right-hand side on a GPU.
  bool takes_steps() const { return on_gpu_ && other_x_.bytes() > 0; }
  /// Memory for this rank's entries of X.
  void* x() const { return takes_steps() && x_is_other_ ? other_x_.data() : exchange_->local_x(); }
  /// As Exchange::wait().
  void wait(Stream& stream) const { exchange_->wait(stream); }

  /// Products can be recorded in a Graph.
  bool capturable() const { return stays_here_ || exchange_->capturable(); }

  std::int64_t x_bytes() const { return x_bytes_; }
  std::int64_t device_bytes() const;
  /// That a product moves at least on this rank.
  std::int64_t compulsory_bytes(double beta) const;

 private:
  /// Stores the rows for products on a GPU.
  void keep(const blocks::BlockRows& rows, bool square, Context& context, ValueType type, const Buffer* modes = nullptr);
  /// Takes the first kernel for several right-hand sides.
  void plan_several(Stream& stream);
  void run(double alpha, const void* x, double beta, void* y, Stream& stream) const;
  /// Of node j of the columns among the nodes of x: own ones, a gap, ghosts.
  std::int32_t place(std::int32_t j) const { return j < own_ ? j : j + ghost_shift_; }
  void find_places(const Nodes& nodes, ColumnMap& map);
  /// Calls use() with the rows, whose columns are places of x.
  template <class Use>
  void with_places(const blocks::BlockRows& rows, Stream& stream, const Use& use) const;

  std::int64_t matrix_bytes() const;

  int columns_;
  ValueType type_;  ///< of the vectors
  std::int64_t rows_;
  std::int64_t x_bytes_ = 0;
  std::unique_ptr<Exchange> exchange_;
  bool stays_here_ = false;  ///< products leave the exchange out
  std::int32_t own_ = 0, ghost_shift_ = 0;
  std::shared_ptr<Storage> storage_;
  std::unique_ptr<Plan> one_;
  std::unique_ptr<SpmmPlan> several_;
  std::optional<blocks::BlockProduct> on_gpu_;
  std::optional<blocks::ColumnsProduct> columns_on_gpu_;
  Buffer other_x_;  ///< steps read x() and write the next one: they take turns
  mutable bool x_is_other_ = false;
};

}  // namespace shardmat::multigrid
