// A rank's rows in the order of row maps that another matrix made, or the caller.
//
// Threads: one thread of each rank; everything here is collective.
#pragma once

#include "runtime/maps/row_map.h"
#include "runtime/matrix/load_part.h"

namespace shardmat {

/// Throws Error(usage) on all ranks unless the given maps are of this context, and have the sizes of the matrix; those of a
/// square matrix must be one. Null: not given.
void require_maps(std::int64_t rows, std::int64_t cols, const RowMap* y_rows, const RowMap* x_rows, Context& context);

/// The rows of the part lie as `y_rows` says, and its columns are numbered as `x_rows` says, each unless it is null. The
/// part takes over starts, ids and order. Throws Error(usage) if a rank does not have the rows that `y_rows` gives it,
/// naming one.
void put_on_maps(LoadedPart& part, const RowMap* y_rows, const RowMap* x_rows, Communicator& communicator);

}  // namespace shardmat
