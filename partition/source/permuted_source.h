// The rows of a source in another order. The columns of a square matrix are renumbered in the same way.
#pragma once

#include <span>

#include "partition/source/row_source.h"

namespace shardmat {

/// Sorts rows by descending length. Keeps a reference to `source` and 24 bytes a row; rows are gathered when they are read.
/// `row_ptr` belongs to the source, has rows + 1 entries, and is used only during the call. Orders compose: if the source is
/// permuted already, the permutation of the result still refers to the original rows.
std::unique_ptr<RowSource> make_length_sorted_source(const RowSource& source, std::span<const std::int64_t> row_ptr);

/// Puts rows into a given order: order[new row] = row of the source. `name`: what row_order() returns. Otherwise as above.
std::unique_ptr<RowSource> make_reordered_source(const RowSource& source, HostVector<std::int64_t> order,
                                                 std::span<const std::int64_t> row_ptr, RowOrder name);

/// Undoes source.permutation(); memory and row_ptr as above.
std::unique_ptr<RowSource> make_original_order_source(const RowSource& source, std::span<const std::int64_t> row_ptr);

}  // namespace shardmat
