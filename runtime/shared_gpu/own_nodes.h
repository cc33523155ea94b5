// What ranks tell a solver of their own rows: coordinates of nodes, near-null vectors and vectors of the null space, each
// rank in the order of the rows that it gave. Owners get them in the order in which their solver takes them.
//
// Threads: one thread of each rank.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/shared_gpu/rank_group.h"
#include "runtime/shared_gpu/group_matrix.h"
#include "runtime/solvers/loop/solver_options.h"

namespace shardmat {

/// Throws Error(usage) if this rank gives the coordinates of another number of nodes than its rows have. Not collective.
void require_nodes_of_rows(std::int64_t nodes, const GroupMatrix& matrix);
/// Throws Error(usage) if they are of other rows than this rank's, or not the same number of each on all ranks. Collective
/// over all ranks; the same error on all of them.
void require_own_nodes(const SolverOptions& given, const GroupMatrix& matrix);

/// Of a call of a group.
std::vector<Operand> operands_of(const SolverOptions& given);
/// On the owner: those of its whole group. `all`: what became of operands_of().
void take_nodes_of_group(SolverOptions& options, std::span<const GroupOperand> all);

/// Moves them to the ranks that have the rows, if own rows were spread anew. Collective over the owners.
void bring_own_nodes(SolverOptions& options, const GroupMatrix& matrix);

}  // namespace shardmat
