// How symmetric a matrix is: exactly where the whole matrix is in memory, else from a sample of its pairs.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/matrix/csr.h"

namespace shardmat {

struct Symmetry {
  bool exact = true;              ///< every off-diagonal entry was looked at, not a sample of them
  std::int64_t off_diagonal = 0;  ///< stored entries a_ij, i ≠ j, looked at
  std::int64_t mirrored = 0;      ///< those of which a_ji is stored, too
  std::int64_t equal = 0;         ///< those of which a_ji is stored with the same value
  double largest_difference = 0;  ///< largest |a_ij - a_ji| where both are stored
};

/// Parallel; a binary search in row j for each a_ij above the diagonal. REQUIRES: a valid, square matrix, row_ptr of all
/// rows.
Symmetry symmetry(const CsrView& matrix);

/// The same for a matrix that is seen slice by slice. Whether a_ij is looked at depends on a hash of {i, j} alone, so that
/// a_ji is, too; the share looked at is halved each time that more than `most` entries are kept, so a smaller matrix is
/// known exactly.
class SymmetrySample {
 public:
  explicit SymmetrySample(std::int64_t most = std::int64_t{1} << 20) : most_(most) {}
  /// REQUIRES: valid rows of a square matrix, each given once.
  void add(std::int64_t first_row, const CsrView& slice);
  Symmetry result();

 private:
  struct Entry {
    std::int64_t low, high;  ///< min(i, j), max(i, j)
    double value;
  };
  bool taken(std::int64_t low, std::int64_t high) const;

  std::int64_t most_;
  std::uint64_t mask_ = 0;  ///< pairs whose hash has one of these bits are not looked at
  std::vector<Entry> kept_;
};

}  // namespace shardmat
