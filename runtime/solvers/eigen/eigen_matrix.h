// Which matrices have eigenvalues that can be computed here.
#pragma once

#include <string_view>

#include "runtime/matrix/distributed_matrix.h"

namespace shardmat {

/// Throws Error(usage or input), naming `method`, unless eigenvalues of the matrix can be computed: it is square, has rows,
/// and its values are f64 or f32. Not collective.
void require_eigen_matrix(std::string_view method, const DistributedMatrix& matrix);

}  // namespace shardmat
