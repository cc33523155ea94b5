#include "partition/writers/text_entries.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "kernels/base/parallel.h"

namespace shardmat {
namespace {

constexpr std::int64_t kTaskEntries = 1 << 16;
constexpr std::size_t kLongestLine = 80;  ///< two numbers of up to 20 characters, one of up to 24, blanks and line end

char* put(char* at, auto number, char end) {
  at = std::to_chars(at, at + kLongestLine, number).ptr;
  *at = end;
  return at + 1;
}

/// Entries [begin, end) of the slice as lines.
std::string format_entries(std::int64_t first_row, const CsrView& slice, std::int64_t begin, std::int64_t end,
                           std::int64_t first_index) {
  std::string text(static_cast<std::size_t>(end - begin) * kLongestLine, '\0');
  char* at = text.data();
  const std::int64_t base = slice.row_ptr[0];
  // The last row that begins at `begin` or before is the one that holds it: rows before it may be empty.
  auto next_row = std::upper_bound(slice.row_ptr.begin(), slice.row_ptr.end(), base + begin);
  for (std::int64_t k = begin; k < end; ++k) {
    while (*next_row <= base + k) ++next_row;
    at = put(at, first_index - 1 + first_row + (next_row - slice.row_ptr.begin()), ' ');
    at = put(at, slice.col_idx[static_cast<std::size_t>(k)] + first_index, ' ');
    at = put(at, slice.values[static_cast<std::size_t>(k)], '\n');
  }
  text.resize(static_cast<std::size_t>(at - text.data()));
  return text;
}

}  // namespace

void append_text_entries(OutputFile& out, const RowSource& source, std::span<const std::int64_t> row_ptr,
                         std::int64_t first_written_row, std::int64_t end_row, std::int64_t base, const Progress& progress) {
  std::int64_t written = row_ptr[static_cast<std::size_t>(first_written_row)];
  for_each_row_slice(source, first_written_row, end_row, [&](std::int64_t first_row, const CsrView& slice) {
    const std::int64_t tasks = (slice.nnz() + kTaskEntries - 1) / kTaskEntries, batch = std::int64_t{4} * thread_count();
    std::vector<std::string> texts(static_cast<std::size_t>(batch));
    for (std::int64_t first = 0; first < tasks; first += batch) {
      const std::int64_t count = std::min(batch, tasks - first);
      parallel_tasks(count, [&](std::int64_t t) {
        const std::int64_t begin = (first + t) * kTaskEntries;
        texts[static_cast<std::size_t>(t)] =
            format_entries(first_row, slice, begin, std::min(slice.nnz(), begin + kTaskEntries), base);
      });
      for (std::int64_t t = 0; t < count; ++t) out.append(texts[static_cast<std::size_t>(t)]);
    }
    written += slice.nnz();
    report(progress, "write text", written, row_ptr.back());
  });
}

}  // namespace shardmat
