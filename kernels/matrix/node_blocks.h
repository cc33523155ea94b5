// How many unknowns a node of finite elements has, as the sparsity pattern tells. The unknowns of a node couple with the
// same nodes: in groups of the right size, the pattern consists of blocks that are full, or nearly so if zeros were dropped.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kernels/matrix/csr.h"

namespace shardmat {

/// The most unknowns of a node that are looked for.
constexpr std::int64_t kMostNodeBlock = 6;

struct RowInterval {
  std::int64_t begin = 0, end = 0;
};

/// The rows to look at: all rows of a small matrix, else 16 ranges all over it. They begin at multiples of 60 rows, which
/// all sizes of blocks divide, and do not depend on the number of ranks.
std::vector<RowInterval> node_block_samples(std::int64_t rows);

/// Rows with more entries are not looked at.
constexpr std::int64_t kLongestSampledRow = 1000;

/// Blocks of one size: groups of rows begin at `shift`, `shift` + `size` …, and groups of columns likewise.
struct BlockGrouping {
  std::int64_t size = 1, shift = 0;
};

/// Sums over the groups of a sample.
struct BlockTally {
  std::int64_t groups = 0;     ///< groups of rows
  std::int64_t diagonals = 0;  ///< groups whose diagonal block has entries
  std::int64_t nonzeros = 0;
  std::int64_t room = 0;                                               ///< nonzeros and zeros in blocks that have entries
  std::int64_t full = 0;                                               ///< nonzeros in groups whose blocks are all full
  std::int64_t blocks = 0;                                             ///< with entries, not cut by the edge of the matrix
  std::array<std::int64_t, kMostNodeBlock * kMostNodeBlock> places{};  ///< nonzeros in each place of these blocks

  static constexpr std::int64_t kCount = 6 + kMostNodeBlock * kMostNodeBlock;
  /// All of these, to be added up.
  std::array<std::int64_t, kCount> numbers() const;
  void set_numbers(std::span<const std::int64_t> numbers);
};

/// Rows of the sample in memory.
class NodeBlockSample {
 public:
  explicit NodeBlockSample(std::int64_t rows) : rows_(rows) {}

  /// Consecutive rows of the whole matrix with global columns, in any order. A row is left out if one of its columns is -1,
  /// or if it is longer than kLongestSampledRow.
  void add(std::int64_t first_row, const CsrView& rows);

  BlockTally tally(const BlockGrouping& grouping) const;

 private:
  struct Run {
    std::int64_t first_row = 0;
    std::vector<std::int64_t> starts{0}, columns;
    std::vector<bool> left_out;
  };
  void add_group(const Run& run, std::size_t row, const BlockGrouping& grouping, std::vector<std::int64_t>& blocks,
                 BlockTally& tally) const;

  std::int64_t rows_;
  std::vector<Run> runs_;
};

/// The number of unknowns a node of a square matrix, 1 if its pattern does not consist of blocks. `tallies` gives the sums
/// over the whole sample, in the order of its argument.
///
/// Blocks of a size count if they are full in groups with 75 % of the nonzeros, or if 60 % of their room is filled, and each
/// place in a quarter of the blocks. Nearly all groups must have a diagonal block. No other position of the groups (shifted
/// by less than a block) may fill its blocks about as well, as in a band or a dense matrix. Of several sizes, the largest
/// counts that fills its blocks about as well as the best.
std::int64_t node_block_size(std::int64_t rows,
                             const std::function<std::vector<BlockTally>(const std::vector<BlockGrouping>&)>& tallies);

}  // namespace shardmat
