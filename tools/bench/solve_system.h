// A system A·x = 1 as the solvers of `bench solve` get it: on our ranks, and in shared memory for the peers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/solvers/loop/preconditioner_options.h"
#include "runtime/source/matrix_source.h"
#include "tools/bench/peer_program.h"

namespace shardmat::tools {

class SolveSystem {
 public:
  /// `coordinates`: a file with a line for each node, or empty. Collective; the same error on all ranks. The context
  /// outlives the system.
  SolveSystem(const std::string& matrix, const std::string& coordinates, Context& context);

  /// Rank 0 copies the system to shared memory. Collective; the same error on all ranks.
  void share();
  /// On rank 0 after share(); else null.
  SharedOperands* operands() { return operands_.get(); }
  /// The values of factor·A, for take_values().
  void scale_values(double factor);
  /// Takes the matrix of scale_values() in place of the present one. Collective.
  void take_values();
  /// ‖b − factor·A·x‖ / ‖b‖ of x(), from the shared copy of the system; nothing without one. Collective.
  std::optional<double> relative_residual(double factor);

  Context& context() { return context_; }
  DistributedMatrix& matrix() { return matrix_; }
  const DistributedVector& b() const { return b_; }
  DistributedVector& x() { return x_; }
  const std::shared_ptr<const NodeCoordinates>& coordinates() const { return coordinates_; }
  /// Unknowns of a node.
  std::int64_t node_size() const { return node_size_; }

 private:
  /// Rank 0: as the shared copy orders them.
  SystemNodes nodes() const;

  Context& context_;
  std::string name_, coordinates_file_;
  MatrixSource source_;
  DistributedMatrix matrix_;
  std::int64_t node_size_;
  std::shared_ptr<const NodeCoordinates> coordinates_;  ///< null: not known
  DistributedVector b_, x_;
  std::vector<double> values_;      ///< of this rank's rows of A, in the order of the source
  std::vector<double> new_values_;  ///< of scale_values()
  HostVector<std::int64_t> order_;  ///< rank 0, after share(): the original row of each row of the source; empty: the same
  std::unique_ptr<SharedOperands> operands_;
};

}  // namespace shardmat::tools
