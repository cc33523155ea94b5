// CSR as three arrays behind a line of text, as a program writes it that has nothing but its arrays, and as clients of the
// service send them (PUT /v1/matrices/NAME):
//
//   %%Shardmat CSR rows=3 cols=3 nonzeros=5 offsets=i64 columns=i32 values=f64
//
// then, little-endian and without gaps, rows + 1 offsets from 0 on, the columns of all entries from 0 on, their values.
// Offsets and columns are i32 or i64, values f64 or f32. Spaces may stand at the end of the line, so that the arrays begin
// at a multiple of 64 bytes. Every process reads any rows.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <sstream>
#include <utility>

#include "kernels/base/error.h"
#include "partition/files/first_bytes.h"
#include "partition/files/input_file.h"
#include "partition/readers/reader_list.h"

namespace shardmat {
namespace {

constexpr std::string_view kBanner = "%%Shardmat CSR ";
constexpr std::size_t kLongestLine = 1024;
constexpr std::int64_t kMostSize = std::int64_t{1} << 48;  ///< rows, columns, nonzeros: sizes in bytes do not overflow

/// What the line says.
struct Layout {
  std::int64_t rows = -1, cols = -1, nnz = -1;
  int offset_bytes = 8, column_bytes = 8, value_bytes = 8;
  std::int64_t offsets = 0, columns = 0, values = 0, end = 0;  ///< places in the file
};

class CsrArrays final : public RowSource {
 public:
  CsrArrays(const std::filesystem::path& path, const ReadOptions& options)
      : file_(path), allow_nonfinite_(options.allow_nonfinite), layout_(read_layout()) {
    std::int64_t ends[2] = {0, 0};
    read_whole(layout_.offsets, layout_.offset_bytes, 1, ends);
    read_whole(layout_.offsets + layout_.rows * layout_.offset_bytes, layout_.offset_bytes, 1, ends + 1);
    if (ends[0] != 0) fail(fmt::format("the first offset is {}; it must be 0", ends[0]));
    if (ends[1] != layout_.nnz)
      fail(fmt::format("the last offset is {}, but the line says nonzeros={}: one of them is wrong", ends[1], layout_.nnz));
  }

  std::int64_t rows() const override { return layout_.rows; }
  std::int64_t cols() const override { return layout_.cols; }
  std::string name() const override { return file_.path().string(); }

  HostVector<std::int64_t> row_lengths(std::int64_t begin, std::int64_t end) const override {
    HostVector<std::int64_t> lengths = offsets(begin, end);
    for (std::size_t i = 0; i + 1 < lengths.size(); ++i) lengths[i] = lengths[i + 1] - lengths[i];
    lengths.resize(lengths.size() - 1);
    return lengths;
  }

  HostCsr read_rows(std::int64_t begin, std::int64_t end) const override {
    HostCsr part;
    part.rows = end - begin, part.cols = layout_.cols;
    part.row_ptr = offsets(begin, end);
    const std::int64_t first = part.row_ptr.front(), count = part.row_ptr.back() - first;
    for (std::int64_t& offset : part.row_ptr) offset -= first;
    part.col_idx.resize(static_cast<std::size_t>(count));
    part.values.resize(static_cast<std::size_t>(count));
    read_whole(layout_.columns + first * layout_.column_bytes, layout_.column_bytes, count, part.col_idx.data());
    read_values(first, count, part.values.data());
    file_.require_unchanged();
    for (std::int64_t i = 0; i < part.rows; ++i) {
      const std::int64_t at = part.row_ptr[static_cast<std::size_t>(i)];
      tidy(begin + i, first + at, part.col_idx.data() + at, part.values.data() + at,
           part.row_ptr[static_cast<std::size_t>(i) + 1] - at);
    }
    return part;
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& setting = {}) const {
    throw Error(ErrorKind::input, fmt::format("{}: {}", file_.path().string(), what), setting);
  }
  /// "row 5, entry 17: what". Entries are counted through the whole array, from 0 on.
  [[noreturn]] void fail_at(std::int64_t row, std::int64_t entry, const std::string& what,
                            const std::string& setting = {}) const {
    fail(fmt::format("row {}, entry {}: {}", row, entry, what), setting);
  }

  Layout read_layout() const {
    std::string line(static_cast<std::size_t>(std::min<std::int64_t>(kLongestLine, file_.size())), '\0');
    file_.read(line.data(), 0, std::ssize(line));
    const std::size_t end = line.find('\n');
    constexpr const char* kExample = "%%Shardmat CSR rows=3 cols=3 nonzeros=5 offsets=i64 columns=i32 values=f64";
    if (!line.starts_with(kBanner) || end == std::string::npos)
      fail(fmt::format("it does not begin with a line as {}", kExample));
    Layout layout;
    std::istringstream words(line.substr(kBanner.size(), end - kBanner.size()));
    for (std::string word; words >> word;) {
      const std::size_t equals = std::min(word.find('='), word.size());
      const std::string key = word.substr(0, equals), value = word.substr(std::min(equals + 1, word.size()));
      if (key == "rows") layout.rows = size_of(word, value);
      else if (key == "cols") layout.cols = size_of(word, value);
      else if (key == "nonzeros") layout.nnz = size_of(word, value);
      else if (key == "offsets" && (value == "i32" || value == "i64")) layout.offset_bytes = value == "i32" ? 4 : 8;
      else if (key == "columns" && (value == "i32" || value == "i64")) layout.column_bytes = value == "i32" ? 4 : 8;
      else if (key == "values" && (value == "f32" || value == "f64")) layout.value_bytes = value == "f32" ? 4 : 8;
      else fail(fmt::format("its first line has \"{}\"; write one as {}", word, kExample));
    }
    if (layout.rows < 0 || layout.cols < 0 || layout.nnz < 0)
      fail(fmt::format("its first line must say rows, cols and nonzeros, as {}", kExample));
    layout.offsets = static_cast<std::int64_t>(end) + 1;
    layout.columns = layout.offsets + (layout.rows + 1) * layout.offset_bytes;
    layout.values = layout.columns + layout.nnz * layout.column_bytes;
    layout.end = layout.values + layout.nnz * layout.value_bytes;
    if (layout.end != file_.size())
      fail(fmt::format(
          "it has {} bytes, but {} behind a first line of {} bytes would be {} offsets, {} columns and {} values",
          file_.size(), layout.end - layout.offsets, layout.offsets, layout.rows + 1, layout.nnz, layout.nnz));
    return layout;
  }

  std::int64_t size_of(const std::string& word, const std::string& value) const {
    std::int64_t size = -1;
    const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), size);
    if (error != std::errc() || stop != value.data() + value.size() || size < 0 || size > kMostSize)
      fail(fmt::format("its first line has \"{}\": a whole number from 0 to 2^48 is wanted", word));
    return size;
  }

  /// Whole numbers of 4 or 8 bytes, made wide.
  void read_whole(std::int64_t place, int bytes, std::int64_t count, std::int64_t* to) const {
    if (bytes == 8) return file_.read(to, place, 8 * count);
    auto* const narrow = reinterpret_cast<std::int32_t*>(to) + count;  // the second half of `to`
    file_.read(narrow, place, 4 * count);
    for (std::int64_t i = 0; i < count; ++i) {
      std::int32_t number = 0;
      std::copy_n(reinterpret_cast<const char*>(narrow + i), sizeof number, reinterpret_cast<char*>(&number));
      to[i] = number;
    }
  }

  void read_values(std::int64_t first, std::int64_t count, double* to) const {
    if (layout_.value_bytes == 8) return file_.read(to, layout_.values + 8 * first, 8 * count);
    HostVector<float> narrow(static_cast<std::size_t>(count));
    file_.read(narrow.data(), layout_.values + 4 * first, 4 * count);
    std::copy(narrow.begin(), narrow.end(), to);
  }

  /// Offsets of the rows [begin, end], checked.
  HostVector<std::int64_t> offsets(std::int64_t begin, std::int64_t end) const {
    if (begin < 0 || begin > end || end > layout_.rows)
      throw Error(ErrorKind::internal,
                  fmt::format("{}: rows [{}, {}) asked of a matrix with {} rows", name(), begin, end, layout_.rows));
    HostVector<std::int64_t> all(static_cast<std::size_t>(end - begin) + 1);
    read_whole(layout_.offsets + begin * layout_.offset_bytes, layout_.offset_bytes, std::ssize(all), all.data());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::int64_t row = begin + static_cast<std::int64_t>(i);
      if (all[i] < 0 || all[i] > layout_.nnz)
        fail(fmt::format("offset {} is {}, which is out of range [0, {}]", row, all[i], layout_.nnz));
      if (i == 0) continue;
      const std::int64_t length = all[i] - all[i - 1];
      if (length < 0)
        fail(fmt::format("row {}: its offsets {} and {} descend; they must be sums of row lengths", row - 1, all[i - 1],
                         all[i]));
      if (length > layout_.cols)
        fail(fmt::format("row {}: it has {} entries in a matrix with {} columns; sum entries that come twice", row - 1,
                         length, layout_.cols));
    }
    return all;
  }

  /// Checks a row and sorts it by columns. `entry`: its first one.
  void tidy(std::int64_t row, std::int64_t entry, std::int64_t* columns, double* values, std::int64_t length) const {
    bool sorted = true;
    for (std::int64_t k = 0; k < length; ++k) {
      if (columns[k] < 0 || columns[k] >= layout_.cols)
        fail_at(row, entry + k,
                fmt::format("column {} is out of range [0, {}); columns count from 0", columns[k], layout_.cols));
      if (!allow_nonfinite_ && !std::isfinite(values[k]))
        fail_at(row, entry + k,
                fmt::format("the value {} is not finite; correct it, or accept values that are not finite", values[k]),
                "allow_nonfinite");
      sorted &= k == 0 || columns[k] > columns[k - 1];
    }
    if (sorted) return;
    std::vector<std::pair<std::int64_t, std::int64_t>> order(static_cast<std::size_t>(length));  // column, place
    for (std::int64_t k = 0; k < length; ++k) order[static_cast<std::size_t>(k)] = {columns[k], k};
    std::sort(order.begin(), order.end());
    const std::vector<double> before(values, values + length);
    for (std::int64_t k = 0; k < length; ++k) {
      const auto [column, place] = order[static_cast<std::size_t>(k)];
      if (k > 0 && column == columns[k - 1])
        fail_at(row, entry + place,
                fmt::format("column {} comes twice in this row; sum such entries before they are sent", column));
      columns[k] = column, values[k] = before[static_cast<std::size_t>(place)];
    }
  }

  InputFile file_;
  bool allow_nonfinite_;
  Layout layout_;
};

}  // namespace

bool accepts_csr_arrays(const std::filesystem::path& path) {
  return first_bytes(path, kBanner.size()) == kBanner || path.extension() == ".csr";
}

std::unique_ptr<RowSource> open_csr_arrays(const std::filesystem::path& path, const ReadOptions& options) {
  return std::make_unique<CsrArrays>(path, options);
}

}  // namespace shardmat
