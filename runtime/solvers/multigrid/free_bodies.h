// Connected parts of a matrix that nothing holds, of a program of one process.
//
// Threads: one thread at a time; not collective, and MPI need not be started.
#pragma once

#include "partition/source/row_source.h"
#include "runtime/solvers/loop/null_vectors.h"

namespace shardmat {

/// What a symmetric matrix maps to 0 of each connected part: its constants, or its motions where `source` knows the nodes.
/// As multigrid finds it; without the vectors. Takes the memory of the matrix twice. Throws Error(resources) if there is not
/// enough.
NullVectors find_free_bodies(RowSource& source);

}  // namespace shardmat
