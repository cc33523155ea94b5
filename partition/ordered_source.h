// A matrix in each of the orders that RowOrder names.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "partition/row_source.h"

namespace shardmat {

/// What `source` can be had in, the simplest first: rcm and graph are for square matrices, graph for builds with METIS.
std::vector<RowOrder> possible_orders(const RowSource& source);

/// Throws Error(usage) for an order that the source cannot be had in, and for graph with 0 parts.
void require_order(const RowSource& source, RowOrder order, int parts);

/// The rows in another order, as make_reordered_source; null for as_source. `row_ptr` is the source's and used during the
/// call only, `parts` the most parts that an order by graph is for. rcm and graph read the whole matrix into memory if it
/// is not there. Throws as require_order(), and Error(resources) before taking more memory than there is.
std::unique_ptr<RowSource> make_ordered_source(const RowSource& source, std::span<const std::int64_t> row_ptr,
                                               RowOrder order, int parts, bool allow_nonfinite, const Progress& progress);

}  // namespace shardmat
