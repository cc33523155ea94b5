// Puts the rows of a matrix into one of the orders in RowOrder.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "partition/source/row_source.h"

namespace shardmat {

/// The possible orders of `source`, the simplest first: rcm and graph need a square matrix, graph also a build with METIS.
std::vector<RowOrder> possible_orders(const RowSource& source);

/// Throws Error(usage) for an order that is not possible for the source, and for graph with 0 parts.
void require_order(const RowSource& source, RowOrder order, int parts);

/// The rows in another order, as from make_reordered_source(); null for as_source. `row_ptr` belongs to the source and is
/// used only during the call. `parts`: the largest number of parts for the order graph. rcm and graph read the whole matrix
/// into memory, unless it is in memory already. Throws as require_order(), and Error(resources) before allocating more
/// memory than there is.
std::unique_ptr<RowSource> make_ordered_source(const RowSource& source, std::span<const std::int64_t> row_ptr,
                                               RowOrder order, int parts, bool allow_nonfinite, const Progress& progress);

}  // namespace shardmat
