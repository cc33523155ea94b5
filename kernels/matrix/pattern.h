// Statistics of where the nonzeros of a matrix lie. They are counted in one parallel pass over the rows, slice by slice, so
// a matrix may be larger than memory. Memory: one byte for each column and each diagonal.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/base/host_vector.h"
#include "kernels/matrix/csr.h"

namespace shardmat {

/// A histogram of sizes by powers of two: bin 0 counts the size 0, bin b the sizes 2^(b-1) … 2^b - 1.
struct Histogram {
  std::array<std::int64_t, 65> bins{};
  void add(std::int64_t size) { ++bins[static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(size)))]; }
  void add(const Histogram& other);
  static constexpr std::int64_t smallest(std::size_t bin) { return bin == 0 ? 0 : std::int64_t{1} << (bin - 1); }
  static constexpr std::int64_t largest(std::size_t bin) { return bin == 0 ? 0 : 2 * (smallest(bin) - 1) + 1; }
};

/// Aligned b × b blocks: block (I, J) holds rows b·I … b·I + b - 1 and columns b·J … b·J + b - 1.
struct BlockStatistics {
  int size = 0;               ///< b
  std::int64_t occupied = 0;  ///< blocks with at least one stored entry
  std::int64_t full = 0;      ///< blocks with b² stored entries

  /// Stored entries divided by the entries of a blocked format (b² for each occupied block); 1 without blocks.
  double fill(std::int64_t nnz) const;
  /// Share of the stored entries that lie in full blocks.
  double full_share(std::int64_t nnz) const;
};

struct PatternStatistics {
  static constexpr std::array<int, 4> kBlockSizes{2, 3, 4, 6};

  std::int64_t rows = 0, cols = 0, nnz = 0;
  std::int64_t empty_rows = 0, empty_columns = 0;
  Histogram row_lengths;
  std::int64_t runs = 0;             ///< maximal runs of consecutive columns within a row
  std::int64_t entries_in_runs = 0;  ///< entries in runs of two and more
  Histogram run_lengths;             ///< counts runs
  std::int64_t lower_bandwidth = 0;  ///< largest i - j of an entry (i, j), at least 0
  std::int64_t upper_bandwidth = 0;  ///< largest j - i, at least 0
  std::int64_t profile = 0;          ///< sum over rows of i - (its first column), where that is positive
  std::int64_t diagonals = 0;        ///< diagonals with at least one stored entry
  std::int64_t main_diagonal = 0;    ///< stored entries (i, i)
  std::int64_t explicit_zeros = 0, nonfinite = 0;
  double smallest = 0, largest = 0;  ///< |value| over all finite values other than 0; 0 if there is none
  std::vector<BlockStatistics> blocks;

  double mean_run() const { return runs == 0 ? 0 : static_cast<double>(nnz) / static_cast<double>(runs); }
  bool lower_triangular() const { return upper_bandwidth == 0; }
  bool upper_triangular() const { return lower_bandwidth == 0; }
  bool diagonal() const { return lower_triangular() && upper_triangular(); }
};

/// Counts the statistics: add() all rows in slices, then call result().
class PatternScan {
 public:
  /// Slices begin at multiples of this number, so that no slice cuts a block of any size in kBlockSizes.
  static constexpr std::int64_t kRowMultiple = 12;

  PatternScan(std::int64_t rows, std::int64_t cols);
  /// REQUIRES: valid rows, each given once. A slice begins and ends at multiples of kRowMultiple, or ends at the last row.
  void add(std::int64_t first_row, const CsrView& slice);
  PatternStatistics result() const;

 private:
  void scan_rows(std::int64_t first_row, const CsrView& slice, std::int64_t begin, std::int64_t end,
                 PatternStatistics& found);

  PatternStatistics all_;
  HostVector<unsigned char> columns_;    ///< 1 where a column has an entry
  HostVector<unsigned char> diagonals_;  ///< entry k is 1 if diagonal j - i = k - rows + 1 has an entry
};

/// Exact quantiles of the row lengths: the share at[i] (from 0 to 1) of the rows is not longer than result[i]. Zeros without
/// rows.
std::vector<std::int64_t> row_length_quantiles(std::span<const std::int64_t> row_ptr, std::span<const double> at);

}  // namespace shardmat
