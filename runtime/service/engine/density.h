// A small picture of a matrix: how many nonzeros this rank's rows have in each cell of a coarse grid over the whole matrix.
// Rows and columns count as in the source, whatever order they have here.
#pragma once

#include "runtime/service/wire/command.h"

namespace shardmat {
class DistributedMatrix;
}

namespace shardmat::service {

/// Reads the columns once. Collective; the same error on all ranks. REQUIRES: the matrix has its host rows.
Density count_density(const DistributedMatrix& matrix);

}  // namespace shardmat::service
