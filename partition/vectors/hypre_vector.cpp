// Vectors of hypre, one file a rank; readers/hypre.h describes them. A vector is read as a whole when it is opened.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "kernels/base/error.h"
#include "partition/files/output_file.h"
#include "partition/readers/hypre.h"
#include "partition/readers/text_numbers.h"
#include "partition/readers/text_source.h"
#include "partition/vectors/vector_formats.h"

namespace shardmat {
namespace {

/// The text of one rank: every row once, in any order.
void read_text(const hypre::Part& part, std::int64_t first_row, HostVector<double>& values) {
  const auto source = TextSource::open(part.path, {});
  std::vector<bool> known(static_cast<std::size_t>(part.end_row - part.first_row));
  std::int64_t found = 0;
  ReadLimits one_piece;  // at a time: an entry that comes twice is an error of the later line
  one_piece.piece_bytes = std::numeric_limits<std::int64_t>::max();
  one_piece.batch_bytes = 1 << 20;
  for_each_piece(*source, part.body, one_piece, "read vector", {}, [&](std::string_view piece) {
    for (const char *line = piece.data(), *end = line + piece.size(); line < end;
         line = static_cast<const char*>(std::memchr(line, '\n', static_cast<std::size_t>(end - line))) + 1) {
      if (*matrix_market::skip_blanks(line) == '\n') continue;
      std::int64_t row = 0;
      double value = 0;
      const char* const p = text_numbers::parse_whole(line, "row", part.first_row, part.end_row - 1, row);
      text_numbers::require_line_end(text_numbers::parse_real(p, true, value));
      const auto at = static_cast<std::size_t>(row - part.first_row);
      if (known[at]) throw LineFault{line, fmt::format("row {} comes twice", row)};
      known[at] = true;
      values[static_cast<std::size_t>(row - first_row)] = value;
      ++found;
    }
  });
  if (found != part.end_row - part.first_row)
    throw Error(ErrorKind::input, fmt::format("{}: it has {} of the rows {} to {}; it is truncated, copy or write it again",
                                              part.path.string(), found, part.first_row, part.end_row - 1));
  source->file().require_unchanged();
}

void read_binary(const hypre::Part& part, double* values) {
  const InputFile file(part.path);
  if (part.value_bytes == 8) file.read(values, part.body, 8 * part.entries);
  else {
    HostVector<float> narrow(static_cast<std::size_t>(part.entries));
    file.read(narrow.data(), part.body, 4 * part.entries);
    std::copy(narrow.begin(), narrow.end(), values);
  }
  file.require_unchanged();
}

class HypreTextSink final : public VectorSink {
 public:
  HypreTextSink(const AtomicFile& file, std::int64_t begin, std::int64_t end) : file_(file), row_(begin) {
    file_.append(fmt::format("{} {}\n", begin, end - 1));
  }
  void append(const double* values, std::int64_t count) override {
    for (std::int64_t i = 0; i < count; ++i) file_.append(fmt::format("{} {:.16e}\n", row_++, values[i]));
  }
  void close() override { file_.close(); }

 private:
  OutputFile file_;
  std::int64_t row_;
};

class HypreBinarySink final : public VectorSink {
 public:
  HypreBinarySink(const AtomicFile& file, std::int64_t size, std::int64_t begin, std::int64_t end) : file_(file) {
    const std::array<std::int64_t, 8> header{1, 8, begin, end - 1, size, end - begin, 1, 0};
    file_.append({reinterpret_cast<const char*>(header.data()), sizeof header});
  }
  void append(const double* values, std::int64_t count) override {
    file_.append({reinterpret_cast<const char*>(values), static_cast<std::size_t>(count) * sizeof(double)});
  }
  void close() override { file_.close(); }

 private:
  OutputFile file_;
};

}  // namespace

bool accepts_hypre_vector(const std::filesystem::path& path) { return hypre::has_hypre_name(path); }

VectorContents open_hypre_vector(const std::filesystem::path& path, const VectorChoice& choice, std::int64_t columns) {
  if (columns > 1)
    throw Error(ErrorKind::usage,
                fmt::format("{}: files of hypre hold one vector; take .npy or .h5 for {} columns", path.string(), columns));
  if (!choice.object.empty())
    throw Error(ErrorKind::input,
                fmt::format("{}: files of hypre hold one vector; leave out :{}", path.string(), choice.object));
  const hypre::Parts all = hypre::open_parts(path, true);
  ReadLimits{}.require_memory(8 * all.rows, path);
  ReadLimits::require_plausible(8 * all.rows, path, all.bytes);
  auto values = std::make_shared<HostVector<double>>(static_cast<std::size_t>(all.rows));
  for (const hypre::Part& part : all.parts) {
    if (part.binary) read_binary(part, values->data() + (part.first_row - all.first_row));
    else read_text(part, all.first_row, *values);
  }
  return {all.rows, 1, [values](std::int64_t begin, std::int64_t end) {
            return HostVector<double>(values->begin() + begin, values->begin() + end);
          }};
}

std::unique_ptr<VectorSink> make_hypre_text_sink(const AtomicFile& file, std::int64_t, std::int64_t begin, std::int64_t end,
                                                 std::int64_t) {
  return std::make_unique<HypreTextSink>(file, begin, end);
}

std::unique_ptr<VectorSink> make_hypre_binary_sink(const AtomicFile& file, std::int64_t size, std::int64_t begin,
                                                   std::int64_t end, std::int64_t) {
  return std::make_unique<HypreBinarySink>(file, size, begin, end);
}

}  // namespace shardmat
