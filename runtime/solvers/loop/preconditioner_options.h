// What can be chosen about preconditioners, and preconditioners of the program.
//
// Ownership: options share what the program gives by shared pointers.
// Threads: values; any thread. Options are the same on all ranks. Nothing is collective; the functions of a preconditioner
// of the program are called on all ranks, in the same order, by the thread that uses the solver.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kernels/base/dense.h"
#include "kernels/base/host_vector.h"
#include "kernels/base/types.h"
#include "runtime/matrix/matrix_options.h"

namespace shardmat {

class DistributedMatrix;
class HeldRows;
class NullSpaceProjector;

/// Where the nodes of this rank lie, in the order of the source: `dimensions` values a node.
struct NodeCoordinates {
  /// 2 or 3. 12: the place in space, then the three axes of the node's own system, as *TRANSFORM turns one, or as shells
  /// have them, whose two rotations are about the first two axes and whose director is the third.
  int dimensions = 3;
  HostVector<double> of_own;
  /// Which unknown of its node each row is. Empty: in ascending order.
  HostVector<char> unknowns{};

  static constexpr int kWithAxes = 12;
  static bool allows(int dimensions) { return dimensions == 2 || dimensions == 3 || dimensions == kWithAxes; }
  bool has_axes() const { return dimensions == kWithAxes; }
  int in_space() const { return dimensions == 2 ? 2 : 3; }
};

/// Vectors that A maps to almost 0, in place of those that multigrid makes itself; or to 0: SolverOptions::null_vectors.
struct NearNullVectors {
  static constexpr int kMost = 12;
  int count = 1;                ///< 1 to kMost
  HostVector<double> of_own{};  ///< `count` values for each unknown of this rank, in the order of the source
};

/// Nodes in the middle of an edge, as quadratic elements have them: three node numbers of the source each, the node and the
/// ends of its edge. Of this rank's nodes, ascending by the first.
struct MidEdgeNodes {
  HostVector<std::int64_t> of_own;
};

struct MultigridOptions {
  std::shared_ptr<const NodeCoordinates> coordinates;        ///< null: not known
  std::shared_ptr<const NearNullVectors> near_null_vectors;  ///< null: as near_null_space says; else that must be auto
  std::shared_ptr<const MidEdgeNodes> mid_edges;             ///< null: not known
  std::string near_null_space = "auto";                      ///< auto, rigid, constants or adaptive
  double strength = 0.05;  ///< θ: nodes i and j are strongly coupled if ‖A_ij‖ ≥ θ·√(‖A_ii‖·‖A_jj‖)
  /// As `shardmat solve --help` lists them; auto: chebyshev for symmetric matrices, l1_jacobi for others.
  std::string smoother = "auto";
  int smoother_degree = 2;  ///< steps before and after a coarse correction
  /// V (each level once), W (coarse levels twice) or K (twice, with the best combination of both: M is no linear map). auto:
  /// V for symmetric matrices; for others K, or W unless may_vary.
  std::string cycle = "auto";
  bool may_vary = false;           ///< set by the solver: its method takes an M that is no linear map
  std::int64_t coarse_size = 900;  ///< unknowns at which a level is solved exactly
  /// A rank keeps its part of a coarse level if the part has this many unknowns; or if it has 1000, and a quarter as many as
  /// the rank's part of the first level. 0: in any case.
  std::int64_t rank_size = 20'000;
  int levels = 20;                   ///< at most
  ValueType inner = ValueType::f32;  ///< type of the hierarchy
  /// What new values of the matrix change: keep (the matrices of all levels), smooth (also P, smoothed by the new values) or
  /// anew (everything).
  std::string refresh = "keep";
};

/// Of ilu and ic: which entries their factors have, beside those of the matrix.
struct FactorOptions {
  int levels = 0;              ///< k of ILU(k) and IC(k): the highest level of fill that is kept
  double drop_tolerance = 0;   ///< above 0, in place of levels: keeps entries above this share of the norm of their row
  double fill = 2;             ///< with drop_tolerance: most entries of the factors, as a multiple of those of the matrix
  std::string order = "auto";  ///< of the rows of a rank: natural, rcm, colours, or auto
  int overlap = 0;             ///< 1: a rank also takes the rows next to its own
  int sweeps = 0;              ///< on a GPU, above 0: Jacobi sweeps of each factor in place of exact solves
  /// On a GPU: factors of more levels are solved in one launch, whose rows wait. None: as is the fastest.
  std::optional<std::int64_t> most_launches{};
};

struct PreconditionerOptions {
  int columns = 1;          ///< right-hand sides of apply()
  int node_block_size = 0;  ///< of block_jacobi, ilu and ic: unknowns a node, 1 to 6; 0: block_jacobi_size()
  int degree = 4;           ///< of the chebyshev polynomial: products an application
  bool absolute = false;    ///< takes magnitudes, so that M is positive definite; direct refuses where it is not
  std::shared_ptr<const NullSpaceProjector> projector{};  ///< M is applied to vectors without a part in the null space
  const HeldRows* held = nullptr;                         ///< rows that M leaves out: its vectors are 0 there
  FactorOptions factor;                                   ///< of ilu and ic
  MultigridOptions multigrid;   ///< of multigrid, of the blocks of field_split; its type of values also of ilu and ic
  std::string fields = "auto";  ///< of field_split: fields::split_rows()
  std::string schur = "auto";   ///< of field_split: fields::SchurInverse
  ProductOptions product;       ///< of products that the preconditioner makes; their columns are those above
};

/// A preconditioner of the program: functions that the solver calls. It may change from one iteration to the next with
/// fgmres and with the flexible variant of cg; other methods take it if it says that it is linear.
///
///   shardmat::SolverOptions options;
///   options.solver = "cg";
///   options.own_preconditioner.emplace();
///   options.own_preconditioner->name = "my multigrid";
///   options.own_preconditioner->apply = [&](const auto& r, const auto& z, shardmat::Stream& stream) { … };
struct OwnPreconditioner {
  std::string name = "own";  ///< for reports
  /// Called once, by the Solver's constructor, while the matrix still has its host rows. May be empty.
  std::function<void(DistributedMatrix& matrix, std::int64_t columns, Stream& stream)> set_up;
  /// Called by Solver::refresh(), after the matrix got new values. May be empty.
  std::function<void(Stream& stream)> refresh;
  /// z = M·r, in stream order: what it puts on the stream begins after r is there, and z is taken after it. Both are in the
  /// memory of the matrix's device, row-major, of this rank's rows in the order of DistributedMatrix::y_rows(), with a
  /// column for each right-hand side, of the matrix's sum_type(). They do not overlap; z holds anything before. Required.
  /// On a GPU the host sees the end late, so calls may follow the last iteration. May multiply by products of its own, not
  /// by the solver's. May throw on some ranks only, unless another rank waits for them: then all ranks throw that error, and
  /// the solver stays usable.
  std::function<void(const ConstDense& r, const Dense& z, Stream& stream)> apply;
  /// M is the same linear map in every application: any method takes it.
  bool linear = false;
  /// `apply` only puts work on the stream, always the same, allocates nothing, waits for nothing and throws nothing: GPUs
  /// may record it in a graph. Otherwise no graph is used, and the ranks agree on errors after each call.
  bool capturable = false;
};

/// A preconditioner that works in host memory, and knows nothing of devices and row maps: z = M·r of the rows that this rank
/// gave, in its order (DistributedVector::own()), row-major, a column for each right-hand side, of the matrix's sum_type().
/// May throw on some ranks only: all ranks throw that error then.
OwnPreconditioner host_preconditioner(std::function<void(const ConstDense& r, const Dense& z)> apply);

}  // namespace shardmat
