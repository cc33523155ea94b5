// Smoothed aggregation by node blocks: the levels of a matrix, and a cycle over them.
//
// P. Vaněk, J. Mandel, M. Brezina, Algebraic multigrid by smoothed aggregation for second and fourth order elliptic
// problems, Computing 56 (1996). For matrices that are far from symmetric, P is not smoothed, and aggregates are small
// (pairwise.h): smoothing by A would couple against the wind. Set-up in f64 in host memory or on GPUs;
// the cycle runs on the device, in the type of the options.
//
// Threads: as DistributedMatrix. Everything is collective.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/timer.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/held_rows.h"
#include "runtime/solvers/loop/null_vectors.h"
#include "runtime/solvers/loop/preconditioner_options.h"
#include "runtime/solvers/multigrid/device_coarsening.h"
#include "runtime/solvers/multigrid/galerkin.h"
#include "runtime/solvers/multigrid/level.h"
#include "runtime/solvers/multigrid/mid_edges.h"
#include "runtime/solvers/multigrid/near_null_space.h"
#include "runtime/solvers/multigrid/prolong.h"
#include "runtime/solvers/multigrid/report.h"

namespace shardmat::multigrid {

class Hierarchy {
 public:
  /// `matrix`: square, with its rows in host memory. The same error on all ranks.
  Hierarchy(DistributedMatrix& matrix, const MultigridOptions& options, const HeldRows* held, int columns);
  /// Of rows that are no matrix of their own: vectors have the order of the nodes, and refresh() must not be called.
  Hierarchy(Context& context, NodeRows a, const MultigridOptions& options, int columns);

  /// Takes new values of the matrix. The near null space and the aggregates stay, and so do the prolongations unless
  /// MultigridOptions::refresh says otherwise. If other rows are held now, everything is made anew. After an error only
  /// refresh() may follow.
  void refresh(DistributedMatrix& matrix, const HeldRows* held);

  /// z = about A⁻¹·r by one cycle, for row-major vectors of the matrix's sum_type(). In stream order. r is divided by
  /// `scale` meanwhile, so that the type of the hierarchy holds it.
  void apply(const Dense& r, const Dense& z, double scale, Stream& stream) const;
  /// x = x − M·A·x for row-major vectors of all columns, in the order of the nodes, by a cycle with M.
  void sweep(HostVector<double>& x) const;
  const MultigridReport& report() const { return report_; }
  /// What A maps to 0; looked for when the hierarchy was made, or made anew.
  const NullVectors& null_vectors() const { return null_vectors_; }
  /// From level + 1 to a level with a next one; the first one's nodes are in the order of the source. Valid until refresh().
  const NodeRows& prolongation(std::int64_t level) const;
  bool capturable() const;
  std::int64_t device_bytes() const;
  std::int64_t cycle_bytes() const;
  /// True if the cycle is not a linear map.
  bool varies() const;

 private:
  /// What a refresh needs of a level with a next one; of P the values, too.
  struct Coarsening {
    NodeRows tentative, p;
    Galerkin galerkin;
    bool is_smoothed = true;  ///< p is smoothed(tentative)
  };
  /// The hierarchy of the constants, of the matrix and options of another one.
  Hierarchy(const Hierarchy& like, NodeRows a, int columns);
  void clear_levels();
  void build(NodeRows a);
  /// How dense the levels become, in entries.
  struct Growth {
    double first = 0;   ///< of the first level
    double most = 0;    ///< the complexity that they may have
    double all = 0;     ///< of all levels so far
    double visits = 1;  ///< of the last level so far in a cycle
  };
  void finish(const Growth& growth);
  double first_strength() const;

  // The set-up on GPUs (device_setup.cpp).
  /// Empty: the devices can have the levels. Collective.
  std::string why_not_on_device(const HeldRows* held) const;
  /// False: nothing was made, and report_.why_on_host says why.
  bool build_on_device(DistributedMatrix& matrix, const HeldRows* held);
  /// The next level's matrix; nothing if there is none.
  std::optional<DeviceMatrix> add_level_on_device(const DeviceMatrix& a, DeviceModes& modes, Growth& growth);
  std::optional<DeviceMatrix> coarsen_on_device(const DeviceMatrix& a, const Buffer& diagonal, const Buffer& inverse,
                                                const blocks::Couplings& couplings, double radius, DeviceModes& modes,
                                                const Growth& growth);
  /// False: the values cannot be taken so.
  bool refresh_on_device(DistributedMatrix& matrix, const HeldRows* held);
  void took_on_device(const char* part);

  /// The time since the last call, or since the set-up began, went into this part of it.
  void took(const char* part);
  /// Adds what a hierarchy of the modes hardly reduces.
  void adapt(const NodeRows& a, NearNullSpace& space);
  void order_rows(const RowMap& map);
  Modes free_on_last_level(int size) const;
  /// A next level without nodes in the middle of edges.
  NodeRows drop_middles(const NodeRows& a, Modes& modes);
  /// Looks at the matrix: is it symmetric enough, and what follows of that? Throws Error(usage) for a smoother that it rules
  /// out.
  void take_kind(double asymmetry);
  /// Throws Error(usage) for a type that only a set-up on a GPU stores.
  void require_type_of_host() const;
  Combination combination() const;
  /// Nodes of a next level that a rank has at least; `size`: their unknowns.
  std::int64_t least_nodes(std::int64_t size) const;
  /// Finds x of level `l` from its r: by one cycle, or two.
  void visit(std::size_t l, Stream& stream) const;
  void cycle(std::size_t l, Stream& stream) const;
  /// The next level of `a`; nothing if its nodes do not form aggregates. `left`: nonzeros that the level may have.
  std::optional<NodeRows> coarsen(const NodeRows& a, const HostVector<double>& inverse, double radius, Modes& modes,
                                  double left);
  /// 0 where nothing needs it.
  double radius_of(const Level& level, const HostVector<double>& inverse, int steps) const;

  Context& context_;
  MultigridOptions options_;
  ValueType type_;  ///< of the matrix
  int columns_;
  int size_ = 1;  ///< unknowns of a node of the matrix
  std::vector<std::unique_ptr<Level>> levels_;
  // Of a set-up in host memory:
  std::vector<Coarsening> coarsenings_;
  NodeRows first_pattern_;  ///< of the first level
  // Of one on a GPU:
  std::vector<DeviceCoarsening> on_device_;
  DeviceMatrix device_pattern_;                      ///< of the first level
  std::optional<blocks::EntryPlaces> value_places_;  ///< nothing: the matrix takes no new values
  MidEdges mid_edges_;
  std::shared_ptr<const RowMap> map_;  ///< of the matrix's rows
  Buffer rows_;                        ///< of the matrix, in the order of the nodes; empty: they lie so
  std::optional<krylov::Passes> passes_;
  NullVectors null_vectors_;
  bool symmetric_ = true;
  const SmootherEntry* smoother_ = nullptr;
  std::string cycle_;  ///< V, W or K
  MultigridReport report_;
  Timer since_part_;
};

}  // namespace shardmat::multigrid
