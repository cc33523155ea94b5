#include "runtime/solvers/eigen/eigen_matrix.h"

#include <fmt/format.h>

#include "kernels/base/error.h"

namespace shardmat {

void require_eigen_matrix(std::string_view method, const DistributedMatrix& matrix) {
  if (matrix.rows() != matrix.cols())
    throw Error(ErrorKind::usage,
                fmt::format("eigenvalues need a square matrix; this one is {} × {}", matrix.rows(), matrix.cols()),
                "matrix");
  if (matrix.rows() == 0)
    throw Error(ErrorKind::input, "a matrix without rows has no eigenvalues; give one with rows", "matrix");
  if (is_half(matrix.type()))
    throw Error(ErrorKind::usage, fmt::format("{} needs values in f64 or f32, not in {}", method, name(matrix.type())),
                "type");
}

}  // namespace shardmat
