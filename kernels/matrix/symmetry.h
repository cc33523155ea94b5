// How symmetric a matrix is: exact if the whole matrix is in memory, else estimated from a sample of pairs (a_ij, a_ji).
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/matrix/csr.h"

namespace shardmat {

struct Symmetry {
  bool exact = true;              ///< all off-diagonal entries were checked; false: a sample
  std::int64_t off_diagonal = 0;  ///< checked stored entries a_ij, i ≠ j
  std::int64_t mirrored = 0;      ///< checked entries for which a_ji is stored, too
  std::int64_t equal = 0;         ///< checked entries for which a_ji is stored with the same value
  double largest_difference = 0;  ///< largest |a_ij - a_ji| over pairs that are both stored
};

/// Parallel; makes a binary search in row j for each a_ij above the diagonal. REQUIRES: a valid square matrix, with the
/// row_ptr of all rows.
Symmetry symmetry(const CsrView& matrix);

/// The same for a matrix that comes slice by slice. A hash of {i, j} decides whether a_ij is checked, so a_ji is checked,
/// too. The checked share is halved whenever more than `most` entries are kept; the result for a small matrix is exact.
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
  std::uint64_t mask_ = 0;  ///< pairs whose hash has any of these bits are skipped
  std::vector<Entry> kept_;
};

}  // namespace shardmat
