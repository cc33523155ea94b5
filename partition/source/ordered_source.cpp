#include "partition/source/ordered_source.h"

#include <fmt/format.h>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/text.h"
#include "kernels/matrix/ordering.h"
#include "partition/source/graph_order.h"
#include "partition/source/node_blocks.h"
#include "partition/source/permuted_source.h"

namespace shardmat {
namespace {

/// By the pattern of the whole matrix, which is read into memory if it is not there.
HostVector<std::int64_t> pattern_order(const RowSource& source, std::span<const std::int64_t> row_ptr, RowOrder by,
                                       int parts, bool allow_nonfinite, const Progress& progress) {
  require_order(source, by, parts);
  HostVector<std::int64_t> order;
  const std::int64_t nodes = by == RowOrder::graph ? find_node_block_size(source) : 1;
  require_host_memory(8 * source.rows() + 16 * row_ptr.back(), "the matrix, to reorder it");
  source.visit_rows(0, source.rows(), [&](const CsrView& matrix) {
    validate(matrix, {allow_nonfinite, 0, source.name()});
    order = by == RowOrder::rcm ? order_by_rcm(matrix, progress) : order_by_graph(matrix, parts, nodes);
  });
  return order;
}

}  // namespace

std::vector<RowOrder> possible_orders(const RowSource& source) {
  std::vector<RowOrder> orders{RowOrder::as_source, RowOrder::by_length};
  if (source.rows() == source.cols()) orders.push_back(RowOrder::rcm);
  if (source.rows() == source.cols() && built_with_metis()) orders.push_back(RowOrder::graph);
  return orders;
}

void require_order(const RowSource& source, RowOrder order, int parts) {
  const bool by_pattern = order == RowOrder::rcm || order == RowOrder::graph;
  if (by_pattern && source.rows() != source.cols())
    throw Error(ErrorKind::usage, fmt::format("{} is {} × {}; only square matrices can be reordered", source.name(),
                                              human_count(source.rows()), human_count(source.cols())));
  if (order == RowOrder::graph && parts == 0)
    throw Error(ErrorKind::usage, "an order by parts of the graph needs the number of parts", "parts");
}

std::unique_ptr<RowSource> make_ordered_source(const RowSource& source, std::span<const std::int64_t> row_ptr,
                                               RowOrder order, int parts, bool allow_nonfinite, const Progress& progress) {
  switch (order) {
    case RowOrder::as_source:
      return nullptr;
    case RowOrder::by_length:
      return make_length_sorted_source(source, row_ptr);
    default:
      return make_reordered_source(source, pattern_order(source, row_ptr, order, parts, allow_nonfinite, progress), row_ptr,
                                   order);
  }
}

}  // namespace shardmat
