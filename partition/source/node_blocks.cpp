#include "partition/source/node_blocks.h"

#include <fmt/format.h>

#include <span>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/matrix/node_blocks.h"

namespace shardmat {

std::int64_t find_node_block_size(const RowSource& source) {
  if (const std::int64_t known = source.node_block_size(); known > 0) return known;
  if (source.rows() != source.cols()) return 1;
  NodeBlockSample sample(source.rows());
  for (const RowInterval& range : node_block_samples(source.rows())) {
    // The rows of a range that is read in slices are one piece to the sample.
    std::vector<std::int64_t> starts{0}, columns;
    for_each_row_slice(source, range.begin, range.end, [&](std::int64_t, const CsrView& rows) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(rows.rows); ++i) {
        const auto begin = rows.row_ptr[i] - rows.row_ptr[0], end = rows.row_ptr[i + 1] - rows.row_ptr[0];
        if (end - begin > kLongestSampledRow) columns.push_back(-1);
        else
          for (std::int64_t k = begin; k < end; ++k) columns.push_back(rows.col_idx[static_cast<std::size_t>(k)]);
        starts.push_back(std::ssize(columns));
      }
    });
    CsrView view;
    view.rows = range.end - range.begin, view.cols = source.cols();
    view.row_ptr = starts, view.col_idx = std::span<const std::int64_t>(columns);
    sample.add(range.begin, view);
  }
  return node_block_size(source.rows(), [&](const std::vector<BlockGrouping>& groupings) {
    std::vector<BlockTally> sums;
    for (const BlockGrouping& grouping : groupings) sums.push_back(sample.tally(grouping));
    return sums;
  });
}

void require_nodes_in_order(std::int64_t size, std::int64_t found, const RowSource& permuted) {
  if (found % size == 0) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("{}: its rows were put in another order ({}), and the pattern does not show that the {} unknowns of "
                  "a node are still together; take the original order, or leave out the size of nodes",
                  permuted.name(), title(permuted.row_order()), size),
      "node_block_size");
}

void require_nodes_in_order(std::int64_t size, const RowSource& permuted) {
  require_nodes_in_order(size, find_node_block_size(permuted), permuted);
}

}  // namespace shardmat
