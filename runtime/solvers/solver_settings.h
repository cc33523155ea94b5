// The options of solvers as one table: name, values, default, help. Those of a method or a preconditioner are described in
// its file. The command, C, Fortran, Python, PETSc's plug-in, the checks and the reports take them from here, so that a new
// option is a field of SolverOptions and its description.
//
// Threads: any thread. Nothing here is collective.
#pragma once

#include <string>
#include <vector>

#include "comm/same_on_all_ranks.h"
#include "runtime/solvers/loop/setting.h"
#include "runtime/solvers/loop/solver_options.h"

namespace shardmat {

const std::vector<SolverSetting>& solver_settings();
/// Throws Error(usage) for an unknown name, with the nearest one.
const SolverSetting& find_solver_setting(const std::string& name);

/// Throws Error(usage) for the first of these settings that the chosen method or preconditioner does not look at.
void require_used(const std::vector<const SolverSetting*>& given, const SolverOptions& options);
/// Takes "restart=50 variant=classic": entries apart by spaces or commas, then require_used(). Throws Error(usage), also for
/// an entry without '=' and for a name that comes twice.
void take_settings(const std::string& text, SolverOptions& options);
/// Multigrid may be taken, or rigid-body motions are looked for.
bool may_use_coordinates(const SolverOptions& options);
/// Throws Error(usage) for values that no setting takes, and for coordinates and near-null vectors that nothing uses.
void require_good_settings(const SolverOptions& options);
/// For require_same_on_all_ranks().
std::vector<Given> all_settings(const SolverOptions& options);
/// A line for each setting: name, values, default, help.
std::string describe_settings();

}  // namespace shardmat
