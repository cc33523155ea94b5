// The rows of another source in another order; of a square matrix the columns are renumbered alike.
#pragma once

#include <span>

#include "partition/row_source.h"

namespace shardmat {

/// By descending length. Keeps a reference to `source` and 24 bytes a row; rows are gathered when asked for. `row_ptr` is
/// the source's, with rows + 1 entries, and is used during the call only. Orders compose: if the source is permuted itself,
/// the permutation of the result still leads to the original rows.
std::unique_ptr<RowSource> make_length_sorted_source(const RowSource& source, std::span<const std::int64_t> row_ptr);

/// In a given order, order[new row] = row of the source, which `name` calls; as above.
std::unique_ptr<RowSource> make_reordered_source(const RowSource& source, HostVector<std::int64_t> order,
                                                 std::span<const std::int64_t> row_ptr, RowOrder name);

/// Undoes source.permutation(); memory and row_ptr as above.
std::unique_ptr<RowSource> make_original_order_source(const RowSource& source, std::span<const std::int64_t> row_ptr);

}  // namespace shardmat
