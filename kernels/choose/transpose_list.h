// The kernels that multiply a stored matrix's transpose: those of formats whose rows can be added to columns as they lie,
// each one line in transpose_list.cpp, and one for all formats, which goes by a map of the columns (column_entries.h).
#pragma once

#include <memory>

#include "kernels/choose/column_entries.h"
#include "kernels/transpose_plan.h"

namespace shardmat {

/// True if the first make_transpose_plan() takes the storage.
bool transposes_as_stored(const Storage& storage);

/// A plan that needs nothing but the storage. REQUIRES: transposes_as_stored(). Throws Error(resources).
std::unique_ptr<TransposePlan> make_transpose_plan(std::shared_ptr<const Storage> storage, const TransposeShape& shape);

/// A plan for any format. REQUIRES: `entries` was made for the storage; plans for all widths share it.
std::unique_ptr<TransposePlan> make_transpose_plan(std::shared_ptr<const Storage> storage,
                                                   std::shared_ptr<const ColumnEntries> entries,
                                                   const TransposeShape& shape);

}  // namespace shardmat
