// Estimates of the smallest and the largest eigenvalue of M·A by the Lanczos process.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/maps/row_map.h"
#include "runtime/matrix/product.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/loop/solve_result.h"
#include "runtime/solvers/loop/solver_options.h"

namespace shardmat {

class Communicator;

/// What a method notes of the Lanczos process (krylov::Monitor): alpha and beta of conjugate gradients, where x += alpha·p
/// with p = z + beta·(p before), or entries of the tridiagonal matrix, the diagonal and the one below it.
enum class Coefficients { none, of_conjugate_gradients, of_lanczos };

/// What a method tells of the spectrum of M·A by its tridiagonal matrices. Of conjugate gradients: their extreme eigenvalues
/// (Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., 6.7.3). Of the Lanczos process of a matrix that may be
/// indefinite: their extreme singular values, with the row below each matrix. Eigenvalues near 0 come and go there. Both lie
/// within the spectrum, so largest / least is a lower bound of the condition number, up to rounding. Not collective; any
/// thread.
class RitzValues {
 public:
  explicit RitzValues(Coefficients kind = Coefficients::of_conjugate_gradients) : kind_(kind) {}
  /// An iteration took these coefficients. Of the first 100,000 iterations; later ones change little.
  void add(double alpha, double beta);
  /// The method began anew: what follows makes another matrix.
  void begin_anew();
  /// Nothing before two iterations of one beginning.
  std::optional<Spectrum> extremes() const;

 private:
  struct Tridiagonal {
    std::vector<double> diagonal, beside;
  };
  void add_factors(double alpha, double beta);

  Coefficients kind_;
  std::vector<Tridiagonal> matrices_;
  double alpha_before_ = 0;
  std::size_t added_ = 0;
};

/// An upper triangular matrix with `band` diagonals, row by row: entry (i, j) at i · band + j − i.
struct UpperTriangle {
  std::size_t size = 0, band = 0;
  std::vector<double> entries;
};
/// Its extreme singular values, to about four digits, by iterations with RᵀR and its inverse. The least one is 0 for a
/// matrix that is singular up to rounding. Not collective; any thread.
Spectrum singular_values(const UpperTriangle& r);

/// All eigenvalues of a symmetric tridiagonal matrix in ascending order, by bisection (Golub and Van Loan, Matrix
/// Computations, 4th ed., 8.4.1). `beside` has one entry less than `diagonal`, or none if that is empty.
std::vector<double> tridiagonal_eigenvalues(const std::vector<double>& diagonal, const std::vector<double>& beside);

/// A symmetric matrix A and its preconditioner M, which work on vectors of some rows.
struct SpectrumParts {
  std::shared_ptr<const RowMap> rows;
  ValueType type = ValueType::f64;  ///< of the vectors
  std::int64_t columns = 1;
  std::function<void(const Dense&x, const Dense&y)> multiply, precondition;
  std::function<void(const Dense& r)> project = [](const Dense&) {};  ///< removes what A does not act on
  std::function<void()> wait;                                         ///< for the stream
};

/// The extreme Ritz values after `steps` steps of conjugate gradients from a random b (Saad, 2nd ed., 6.7.3): the largest is
/// a little too small, the least too large. Without rows, both are 1. REQUIRES: A and M symmetric positive definite. Throws
/// Error(usage) where it finds that they are not; the error names `setting`, which is "solver" or "preconditioner".
/// Collective; the same on all ranks.
Spectrum estimate_spectrum(const SpectrumParts& parts, int steps, std::string_view setting, Stream& stream);
/// The same for the largest one alone, and from the r that begin() writes: no row map is needed. Vectors are of `type`.
/// Collective over `ranks`; the same on all of them, errors included.
struct LargestParts {
  std::int64_t all = 0, own = 0;  ///< entries of a vector, of all ranks and of this one
  ValueType type = ValueType::f64;
  std::function<void(void* r)> begin;
  std::function<void(const void*x, void*y)> multiply, precondition;
  std::function<void()> wait;  ///< for the stream
};
double estimate_largest(const LargestParts& parts, int steps, std::string_view setting, Communicator& ranks, Stream& stream);
/// The same for a product. Overwrites its x().
Spectrum estimate_spectrum(const Product& product, const Preconditioner& preconditioner, int steps, std::string_view setting,
                           Stream& stream);

}  // namespace shardmat
