// The files of an IJ matrix of hypre, as ranks write them: NAME.00000 … in text, NAME.00000.bin … in binary. readers/hypre.h
// describes both.
#include <fmt/format.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "partition/files/output_file.h"
#include "partition/writers/text_entries.h"
#include "partition/writers/writer_list.h"

namespace shardmat {
namespace {

/// Appends 8 bytes for each nonzero of the part, which `number` gives: number(slice, first_row, i, k) of row i and entry k
/// of a slice.
template <class Number>
void append_numbers(OutputFile& out, const RowSource& source, std::span<const std::int64_t> row_ptr, const RankPart& part,
                    const char* phase, const Progress& progress, Number&& number) {
  std::int64_t written = row_ptr[static_cast<std::size_t>(part.first_row)];
  for_each_row_slice(source, part.first_row, part.end_row, [&](std::int64_t first_row, const CsrView& slice) {
    std::vector<decltype(number(slice, first_row, std::int64_t{0}, std::size_t{0}))> numbers;
    numbers.reserve(static_cast<std::size_t>(slice.nnz()));
    for (std::int64_t i = 0; i < slice.rows; ++i)
      for (std::int64_t k = slice.row_ptr[static_cast<std::size_t>(i)]; k < slice.row_ptr[static_cast<std::size_t>(i) + 1];
           ++k)
        numbers.push_back(number(slice, first_row, i, static_cast<std::size_t>(k - slice.row_ptr[0])));
    out.append({reinterpret_cast<const char*>(numbers.data()), numbers.size() * 8});
    report(progress, phase, written += slice.nnz(), row_ptr.back());
  });
}

}  // namespace

void write_hypre_text(const AtomicFile& file, const RowSource& source, std::span<const std::int64_t> row_ptr,
                      const RankPart& part, const Progress& progress) {
  OutputFile out(file);
  out.append(fmt::format("{} {} {} {}\n", part.first_row, part.end_row - 1, part.first_col, part.end_col - 1));
  append_text_entries(out, source, row_ptr, part.first_row, part.end_row, 0, progress);
  out.close();
}

void write_hypre_binary(const AtomicFile& file, const RowSource& source, std::span<const std::int64_t> row_ptr,
                        const RankPart& part, const Progress& progress) {
  const std::int64_t rows = source.rows(), cols = source.cols(), nnz = row_ptr.back();
  const std::int64_t before = row_ptr[static_cast<std::size_t>(part.first_row)];
  const std::int64_t own = row_ptr[static_cast<std::size_t>(part.end_row)] - before;
  OutputFile out(file);
  const std::array<std::int64_t, 11> header{
      1, 8, 8, rows, cols, nnz, own, part.first_row, part.end_row - 1, part.first_col, part.end_col - 1};
  out.append({reinterpret_cast<const char*>(header.data()), sizeof header});
  append_numbers(out, source, row_ptr, part, "write rows", progress,
                 [](const CsrView&, std::int64_t first_row, std::int64_t i, std::size_t) { return first_row + i; });
  append_numbers(
      out, source, row_ptr, part, "write columns", progress,
      [](const CsrView& slice, std::int64_t, std::int64_t, std::size_t k) -> std::int64_t { return slice.col_idx[k]; });
  append_numbers(out, source, row_ptr, part, "write values", progress,
                 [](const CsrView& slice, std::int64_t, std::int64_t, std::size_t k) -> double { return slice.values[k]; });
  out.close();
}

}  // namespace shardmat
