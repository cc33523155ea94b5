// In which order a rank eliminates its rows, so that threads can do it together: pieces of rows that are not coupled with
// each other, then the rows between them; or, for GPUs, rows by colours.
//
// Threads: values; nothing here is collective.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/host_vector.h"
#include "kernels/base/parallel.h"
#include "runtime/solvers/multigrid/node_rows.h"

namespace shardmat::incomplete {

/// A square matrix of dense blocks of size × size in host memory: the rows that a rank factorises. Columns ascend, and each
/// row has its diagonal block.
struct SquareRows {
  int size = 1;
  HostVector<std::int64_t> start{0};
  HostVector<std::int32_t> column;
  HostVector<double> value;  ///< row-major blocks

  std::int64_t count() const { return std::ssize(start) - 1; }
  std::int64_t block_entries() const { return std::int64_t{size} * size; }
  const double* block(std::int64_t k) const { return value.data() + k * block_entries(); }
};

/// The rows of this rank without the columns of other ranks.
SquareRows own_square(multigrid::NodeRows rows);

/// Groups of rows that follow each other. A phase has one group or more, which are not coupled, nor become so by fill.
struct Order {
  HostVector<std::int32_t> row;        ///< of the matrix, in the order of elimination
  HostVector<std::int32_t> position;   ///< of the rows of the matrix
  std::vector<std::int32_t> group{0};  ///< the first position of each, then the end
  std::vector<std::int32_t> phase{0};  ///< the first group of each, then the end

  std::int64_t count() const { return std::ssize(row); }
  int groups() const { return static_cast<int>(std::ssize(group)) - 1; }
  /// Calls f(group) for all groups, phase by phase; the groups of a phase in parallel.
  template <class F>
  void each_group(const F& f) const {
    for (std::size_t p = 0; p + 1 < phase.size(); ++p) run_phase(p, f);
  }
  /// The phases from last to first.
  template <class F>
  void each_group_backward(const F& f) const {
    for (std::size_t p = phase.size() - 1; p-- > 0;) run_phase(p, f);
  }

 private:
  template <class F>
  void run_phase(std::size_t p, const F& f) const {
    const std::int32_t first = phase[p], groups = phase[p + 1] - first;
    if (groups == 1) f(static_cast<std::size_t>(first));
    else parallel_tasks(groups, [&](std::int64_t g) { f(static_cast<std::size_t>(first + g)); });
  }
};

/// True if entries lie so far from the diagonal, as in meshes with nodes numbered at random, that another order is worth its
/// time: of such a mesh the factors took 136 iterations in the order of the matrix, and 59 with rcm.
bool is_scattered(const SquareRows& a);

/// `rcm`: reverse Cuthill-McKee in place of the order of the matrix. At most `pieces` pieces: fewer where too many rows
/// would lie between them.
Order find_order(const SquareRows& a, bool rcm, int pieces);

/// Rows by colours: rows of a colour are not coupled, nor become so by `levels` levels of fill, up to 2. So the triangles
/// are solved in as many steps as there are colours. With `matching` above 0, colours are those of clusters of up to
/// 2^matching rows, which are matched along the strongest couplings and stay together: more steps, fewer iterations.
/// Phases are colours, of about `pieces` groups; `fills`: rows may become coupled all the same, and all are one group.
Order order_by_colours(const SquareRows& a, int matching, int levels, bool fills, int pieces);

/// Of an order's name: 0 for colours; for clusters the usual one, and N for clusters:N, which measurements ask for. None: it
/// has no colours.
std::optional<int> matching_of(const std::string& order);

}  // namespace shardmat::incomplete
