#include "partition/readers/hypre.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kernels/base/error.h"
#include "partition/files/first_bytes.h"
#include "partition/files/input_file.h"
#include "partition/files/rank_files.h"
#include "partition/readers/text_numbers.h"

namespace shardmat::hypre {
namespace {

constexpr std::int64_t kMostIndex = std::int64_t{1} << 59;

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw Error(ErrorKind::input, fmt::format("{}: {}", path.string(), what));
}

/// The whole numbers of the first line.
std::vector<std::int64_t> first_line(const InputFile& file, Part& part) {
  constexpr std::int64_t kLongest = 256;
  std::string text(static_cast<std::size_t>(std::min(kLongest, file.size())), '\0');
  file.read(text.data(), 0, std::ssize(text));
  const std::size_t end = text.find('\n');
  if (end == std::string::npos && std::ssize(text) == kLongest)
    fail(file.path(), "its first line is no line of an IJ file of hypre; check that it is the right file");
  part.body = static_cast<std::int64_t>(end == std::string::npos ? text.size() : end + 1);
  text.resize(std::min(text.size(), end));
  text += '\n';
  std::vector<std::int64_t> numbers;
  try {
    const std::size_t begin = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
    for (const char* p = matrix_market::skip_blanks(text.data() + begin); *p != '\n'; p = matrix_market::skip_blanks(p)) {
      numbers.emplace_back();
      p = text_numbers::parse_whole(p, "index", -1, kMostIndex, numbers.back());
    }
  } catch (const LineFault& fault) {
    fail(file.path(), fmt::format("its first line is no line of an IJ file of hypre: {}", fault.what));
  }
  return numbers;
}

void require_kind(const InputFile& file, bool is_vector, bool wanted) {
  if (is_vector == wanted) return;
  fail(file.path(), wanted ? "it is a file of a matrix, not of a vector" : "it is a file of a vector, not of a matrix");
}

void read_text_header(const InputFile& file, bool vector, Part& part) {
  const std::vector<std::int64_t> numbers = first_line(file, part);
  if (numbers.size() != 2 && numbers.size() != 4)
    fail(file.path(), fmt::format("its first line has {} numbers; an IJ file of hypre has ilower, iupper, jlower and jupper "
                                  "there, or jlower and jupper of a vector",
                                  numbers.size()));
  require_kind(file, numbers.size() == 2, vector);
  part.first_row = numbers[0], part.end_row = numbers[1] + 1;
  if (!vector) part.first_col = numbers[2], part.end_col = numbers[3] + 1;
  part.entries = std::max<std::int64_t>(0, file.size() - part.body + 1) / (vector ? 4 : 6);  // "1 1\n", "1 1 1\n"
}

std::vector<std::int64_t> binary_numbers(const InputFile& file, std::size_t count) {
  std::vector<std::int64_t> numbers(count);
  const auto bytes = static_cast<std::int64_t>(8 * count);
  if (file.size() < bytes) fail(file.path(), fmt::format("it has {} bytes and no header; it is truncated", file.size()));
  file.read(numbers.data(), 0, bytes);
  return numbers;
}

/// The end behind a last index, which may be any number in a damaged file.
std::int64_t end_behind(std::int64_t last) { return std::clamp<std::int64_t>(last, -2, kMostIndex + 1) + 1; }

bool is_width(std::int64_t bytes) { return bytes == 4 || bytes == 8; }

/// A matrix has its widths of indices and values in the second and third place, a vector one width.
bool is_binary_vector(const InputFile& file) {
  const std::vector<std::int64_t> numbers = binary_numbers(file, 8);
  const bool fits_vector = is_width(numbers[1]) && numbers[2] >= 0 && numbers[3] >= numbers[2] - 1 && numbers[5] >= 0 &&
                           numbers[6] >= 1 && numbers[5] <= kMostIndex / numbers[6] &&
                           numbers[5] * numbers[6] <= kMostIndex / numbers[1] &&
                           64 + numbers[5] * numbers[6] * numbers[1] == file.size();
  return fits_vector && numbers[4] >= numbers[5];
}

void read_binary_vector(const InputFile& file, Part& part) {
  const std::vector<std::int64_t> n = binary_numbers(file, 8);
  part.value_bytes = static_cast<int>(n[1]);
  part.first_row = n[2], part.end_row = end_behind(n[3]);
  part.entries = n[5];
  part.body = 64;
  if (n[6] != 1) fail(file.path(), fmt::format("it has {} components; vectors of one component are read", n[6]));
  if (part.entries != part.end_row - part.first_row)
    fail(file.path(), fmt::format("it has {} entries for the rows {} to {}", part.entries, n[2], n[3]));
}

void read_binary_header(const InputFile& file, bool vector, Part& part) {
  if (binary_numbers(file, 1)[0] != 1)
    fail(file.path(), "it is no binary IJ file of hypre, which begins with the number 1; check that it is the right file");
  const bool is_vector = is_binary_vector(file);
  require_kind(file, is_vector, vector);
  if (is_vector) return read_binary_vector(file, part);
  const std::vector<std::int64_t> n = binary_numbers(file, 11);
  if (!is_width(n[1]) || !is_width(n[2]))
    fail(file.path(), fmt::format("its indices have {} bytes and its values {}; 4 and 8 are read", n[1], n[2]));
  part.index_bytes = static_cast<int>(n[1]), part.value_bytes = static_cast<int>(n[2]);
  part.entries = n[6];
  part.first_row = n[7], part.end_row = end_behind(n[8]), part.first_col = n[9], part.end_col = end_behind(n[10]);
  part.body = 88;
  const std::int64_t each = 2 * n[1] + n[2];
  if (part.entries < 0 || part.entries > file.size() / each || part.body + part.entries * each != file.size())
    fail(file.path(), fmt::format("its header promises {} entries of {} bytes, and it has {} bytes behind the header; it is "
                                  "truncated or damaged, copy or write it again",
                                  part.entries, each, file.size() - part.body));
}

Part read_header(const std::filesystem::path& path, bool vector) {
  const InputFile file(path);
  Part part;
  part.path = path;
  part.bytes = file.size();
  part.binary = path.extension() == ".bin";
  part.vector = vector;
  if (part.binary) read_binary_header(file, vector, part);
  else read_text_header(file, vector, part);
  const auto good = [](std::int64_t first, std::int64_t end) { return first >= 0 && end >= first && end <= kMostIndex; };
  if (!good(part.first_row, part.end_row) || (!vector && !good(part.first_col, part.end_col)))
    fail(path, fmt::format("its first line or header gives rows {} to {} and columns {} to {}; the file is damaged",
                           part.first_row, part.end_row - 1, part.first_col, part.end_col - 1));
  return part;
}

/// Throws unless the rows of the files follow one another; ranks without rows do not count.
void require_rows_in_order(const std::vector<Part>& parts) {
  const Part* last = nullptr;
  for (const Part& part : parts) {
    if (part.first_row == part.end_row) continue;
    if (last != nullptr && last->end_row != part.first_row)
      fail(part.path,
           fmt::format("its rows begin at {}, and those of {} before it end at {}; there is {}, copy the files of "
                       "one run",
                       part.first_row, last->path.string(), last->end_row - 1,
                       part.first_row < last->end_row ? "an overlap" : "a gap"));
    last = &part;
  }
}

}  // namespace

bool has_hypre_name(const std::filesystem::path& path) {
  const std::string name = path.string();
  if (is_rank_pattern(name)) return false;
  const std::string file = path.filename().string();
  return names_rank_files(name) || file.ends_with(".00000") || file.ends_with(".00000.bin");
}

bool is_part(const std::filesystem::path& path, bool vector) {
  try {
    read_header(path, vector);
    return true;
  } catch (const Error&) {
    return false;
  }
}

Parts open_parts(const std::filesystem::path& path, bool vector) {
  Parts all;
  all.name = path.string();
  std::int64_t end_row = 0, end_col = 0;
  for (const std::filesystem::path& file : rank_files(path.string())) {
    all.parts.push_back(read_header(file, vector));
    const Part& part = all.parts.back();
    const bool first = all.parts.size() == 1;
    all.first_row = first ? part.first_row : std::min(all.first_row, part.first_row);
    all.first_col = first ? part.first_col : std::min(all.first_col, part.first_col);
    end_row = std::max(end_row, part.end_row), end_col = std::max(end_col, part.end_col);
    all.bytes += part.bytes;
    all.entries += part.entries;
  }
  if (all.parts.empty())
    fail(path, "there are no files of hypre by this name, as NAME.00000 and NAME.00001; give NAME, or the first file");
  require_rows_in_order(all.parts);
  all.rows = end_row - all.first_row;
  all.cols = vector ? 1 : end_col - all.first_col;
  return all;
}

}  // namespace shardmat::hypre
