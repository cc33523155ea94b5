// Checks one product against a plain sequential f64 loop over the rows of the source, in the source's order. The check
// shares no code with the kernels. It reads the rows again from the source (from memory, if the file was read into memory)
// and takes x from its source, not from the exchange.
//
// Threads: one thread of each rank; verify() is collective.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "kernels/base/progress.h"

namespace shardmat {

class DistributedMatrix;
struct MatrixSource;
class VectorSource;

enum class VerifyMode {
  automatic,  ///< sampled for one right-hand side and more than kFullVerificationLimit nonzeros a rank; else full
  full,       ///< every row
  sampled,    ///< some rows, and on each rank the column-sum identity 1ᵀ(Ax) = (1ᵀA)x, which covers all rows
};
constexpr std::int64_t kFullVerificationLimit = std::int64_t{1} << 31;

/// Replaces `automatic` by full or sampled, for one right-hand side.
VerifyMode resolve(VerifyMode mode, std::int64_t nnz, int ranks);

/// The product that was computed.
struct CheckedProduct {
  double alpha = 1, beta = 0;
  const VectorSource& x;
  const VectorSource* y0 = nullptr;  ///< if beta is not 0
  std::int64_t columns = 1;          ///< right-hand sides
  std::span<const double> y;         ///< this rank's result, as f64, in the order of matrix.y_rows(), row-major
};

struct VerifyResult {
  bool passed = false;
  VerifyMode mode = VerifyMode::full;
  std::int64_t rows_checked = 0;
  std::int64_t wrong_rows = 0;
  std::int64_t worst_row = -1;  ///< original index; -1 for a matrix without rows
  double worst_error = 0;       ///< |y - ŷ| in the worst row
  double worst_bound = 0;       ///< 2·u·nnz·Σ|a||x| in the worst row (+ the terms of alpha and beta)
  double worst_computed = 0, worst_expected = 0;
  bool column_sums_passed = true;  ///< sampled only
  /// One line for people.
  std::string text() const;
};

/// Collective; the same result on all ranks.
VerifyResult verify(const DistributedMatrix& matrix, const MatrixSource& source, const CheckedProduct& product,
                    VerifyMode mode, const Progress& progress = {});

}  // namespace shardmat
