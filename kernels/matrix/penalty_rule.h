// When a row of a matrix states a known value: finite-element programs put a huge number (FreeFEM: tgv) on the diagonal of
// an unknown that is known, and that number times the value into b.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/base/host_device.h"
#include "kernels/matrix/csr.h"

namespace shardmat {

/// How much larger the diagonal is than the other entries of its row, and than the diagonals of the matrix.
inline constexpr double kPenaltyRatio = 1e8;
/// What a known unknown may do to another row, relative to that row, through |a_ij|·|a_ji| / |a_ii|. Rows of a matrix that
/// is badly scaled have large diagonals, too, but this measure does not depend on scaling.
inline constexpr double kPenaltyCoupling = 1e-6;

/// Magnitudes of a row: its entry on the diagonal (0 if none is stored), and its largest other entry.
struct DiagonalAndOthers {
  double diagonal = 0, others = 0;
  SHARDMAT_HOST_DEVICE bool above_others() const { return diagonal > kPenaltyRatio * others; }
  /// `reference`: the median of the diagonals, or the smallest one that is not 0 where the median is that of such rows.
  bool is_penalty(double reference) const { return above_others() && diagonal > kPenaltyRatio * reference; }
  double ratio(double reference) const {
    const double below = std::max(others, reference);
    return below > 0 ? diagonal / below : 0;
  }
};

/// Of the entries [begin, end). `on_diagonal`: the column of the diagonal in this row. `entry`: becomes the entry there, if
/// one is stored.
template <class Columns, class Values>
DiagonalAndOthers diagonal_and_others(const Columns& columns, const Values& values, std::int64_t begin, std::int64_t end,
                                      std::int64_t on_diagonal, double& entry) {
  DiagonalAndOthers found;
  for (std::int64_t k = begin; k < end; ++k) {
    const auto value = static_cast<double>(values[static_cast<std::size_t>(k)]);
    const bool here = columns[static_cast<std::size_t>(k)] == on_diagonal;
    if (here) entry = value;
    double& to = here ? found.diagonal : found.others;
    to = std::max(to, std::abs(value));
  }
  return found;
}
inline DiagonalAndOthers diagonal_and_others(const CsrView& csr, std::size_t row, std::int64_t on_diagonal) {
  double entry = 0;
  return diagonal_and_others(csr.col_idx, csr.values, csr.row_ptr[row], csr.row_ptr[row + 1], on_diagonal, entry);
}

}  // namespace shardmat
