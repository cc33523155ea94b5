// Estimates of the smallest and the largest eigenvalue of M·A by the Lanczos process.
#pragma once

#include <vector>

#include "runtime/matrix/product.h"
#include "runtime/solvers/preconditioner.h"

namespace shardmat {

struct Spectrum {
  double least = 0, largest = 0;
};

/// All eigenvalues of a symmetric tridiagonal matrix in ascending order, by bisection (Golub and Van Loan, Matrix
/// Computations, 4th ed., 8.4.1). `beside` has one entry less than `diagonal`, or none if that is empty.
std::vector<double> tridiagonal_eigenvalues(const std::vector<double>& diagonal, const std::vector<double>& beside);

/// The extreme Ritz values after `steps` steps of conjugate gradients from a random b (Saad, 2nd ed., 6.7.3): the largest is
/// a little too small, the least too large. REQUIRES: A and M symmetric positive definite; throws Error(usage) where that
/// shows. Overwrites the product's x(). Collective; the same on all ranks.
Spectrum estimate_spectrum(const Product& product, const Preconditioner& preconditioner, int steps, Stream& stream);

}  // namespace shardmat
