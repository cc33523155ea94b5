// All eigenvalues and eigenvectors of a small dense symmetric matrix.
#pragma once

#include <cstddef>
#include <vector>

namespace shardmat {

struct SymmetricEigen {
  std::vector<double> values;   ///< ascending
  std::vector<double> vectors;  ///< vector i has the entries [i · n, (i + 1) · n), of length 1
};

/// Householder's tridiagonal form and implicit QL iterations (Golub and Van Loan, Matrix Computations, 4th ed., 8.3) of an
/// n × n matrix whose entries are finite. Only the lower triangle of the row-major `matrix` is read. Errors are a small
/// multiple of the roundoff times the norm. Takes about 9 n³ operations. Not collective; any thread.
SymmetricEigen symmetric_eigen(std::vector<double> matrix, std::size_t n);

}  // namespace shardmat
