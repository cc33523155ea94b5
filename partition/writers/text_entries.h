// Lines "row column value", which several text formats have.
#pragma once

#include <cstdint>

#include "partition/output_file.h"
#include "partition/row_source.h"

namespace shardmat {

/// Appends a line for each nonzero, row after row; indices begin with `base`. Every number has the shortest form that reads
/// back as the same number. Numbers are turned into text on all threads, a slice of rows at a time.
void append_text_entries(OutputFile& out, const RowSource& source, std::int64_t nnz, std::int64_t base,
                         const Progress& progress);

}  // namespace shardmat
