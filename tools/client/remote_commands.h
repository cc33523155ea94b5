// `shardmat solve`, `multiply` and `eigen` when a service does the work: vectors go there and come back. Products and solves
// are bit by bit as ranks here would compute them with --reproducible --same-bits --overlap --no-measure.
#pragma once

#include "runtime/run/eigen.h"
#include "runtime/run/multiply.h"
#include "runtime/run/solve.h"
#include "tools/client/remote_matrix.h"

namespace shardmat::tools {

/// Each returns the exit code. `app`: the command, after parsing. `force`: the output may replace a file of another kind.
int solve_remotely(const CommandLine& app, const RemoteChoice& remote, const SolveOptions& options, bool force);
int eigen_remotely(const CommandLine& app, const RemoteChoice& remote, const EigenOptions& options, bool force);
int multiply_remotely(const CommandLine& app, const RemoteChoice& remote, const MultiplyOptions& options, bool force);

}  // namespace shardmat::tools
