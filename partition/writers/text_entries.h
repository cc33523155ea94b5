// Lines "row column value", which several text formats have.
#pragma once

#include <cstdint>
#include <span>

#include "partition/files/output_file.h"
#include "partition/source/row_source.h"

namespace shardmat {

/// Appends a line for each nonzero of the rows [begin, end), row after row; indices begin with `base`. `row_ptr` is of the
/// whole matrix. Every number has the shortest form that reads back as the same number. Numbers are turned into text on all
/// threads, a slice of rows at a time.
void append_text_entries(OutputFile& out, const RowSource& source, std::span<const std::int64_t> row_ptr, std::int64_t begin,
                         std::int64_t end, std::int64_t base, const Progress& progress);

}  // namespace shardmat
