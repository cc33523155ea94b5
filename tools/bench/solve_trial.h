// One of our solvers on one matrix, ready to solve again and again.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/solvers/solver.h"

namespace shardmat::tools {

/// A system A·X = 1 and how it is solved.
struct SolveCase {
  std::string name, matrix;  ///< matrix: file or generator
  std::string solver, preconditioner;
  std::int64_t columns = 1;
};

struct SolveLimits {
  double rtol = 1e-8;
  std::int64_t most = 500;  ///< iterations
};

class SolveTrial {
 public:
  /// `kernel`: auto or a name. The context outlives it.
  SolveTrial(const SolveCase& one, const std::string& kernel, const SolveLimits& limits, Context& context);

  /// Solves from x = 0.
  SolveResult solve();
  /// Seconds of one product without its exchange.
  double product_seconds();

  std::int64_t rows() const { return matrix_.rows(); }
  std::int64_t nnz() const { return matrix_.nnz(); }
  std::string kernel() const;
  /// True if its product also sums p·Ap.
  bool sums_dot() const;
  /// Of the matrix as it is stored.
  std::int64_t matrix_bytes() const { return matrix_.device_bytes(); }
  /// Rows of a block on the diagonal: unknowns of a node, 1 to 6.
  std::int64_t node_block_size() const { return node_block_size_; }

 private:
  Context& context_;
  DistributedMatrix matrix_;
  std::int64_t node_block_size_;
  Solver solver_;
  DistributedVector b_, x_;
};

}  // namespace shardmat::tools
