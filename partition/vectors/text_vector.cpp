// Vectors as plain text: a row a line.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "kernels/base/error.h"
#include "partition/files/compression/compression.h"
#include "partition/files/output_file.h"
#include "partition/readers/matrix_market.h"
#include "partition/readers/text_source.h"
#include "partition/vectors/vector_file.h"
#include "partition/vectors/vector_formats.h"

namespace shardmat {
namespace {

bool is_separator(char c) { return c == ' ' || c == '\t' || c == '\r' || c == ',' || c == ';'; }

/// The numbers of one line; a comma becomes a blank, which ends a number for the parser.
void parse_row(std::string line, std::int64_t& columns, const char* at, HostVector<double>& values) {
  const bool has_comma = line.find(',') != std::string::npos;
  for (char& c : line)
    if (is_separator(c)) c = ' ';
  const char* p = line.data();
  const char* const end = p + line.size();
  const bool is_first = values.empty();
  std::int64_t found = 0;
  for (p = matrix_market::skip_blanks(p); *p != '\n'; p = matrix_market::skip_blanks(p), ++found) {
    double value = 0;
    try {
      p = matrix_market::parse_value(p, end, matrix_market::Field::real, true, value);
    } catch (LineFault& fault) {
      fault.at = at;
      throw;
    }
    if (found < columns || columns == VectorFile::kAsStored) values.push_back(value);
  }
  if (columns == VectorFile::kAsStored) columns = std::max<std::int64_t>(1, found);
  if (found == columns) return;
  if (has_comma && found == 2 * columns)
    throw LineFault{at,
                    fmt::format("the line has {} numbers; it must have {}. A comma ends a number: write a point before the "
                                "decimals, as in 1.5",
                                found, columns),
                    is_first ? columns_setting(2, found) : ""};
  throw LineFault{at, fmt::format("the line has {} numbers; it must have {}", found, columns),
                  is_first ? columns_setting(2, found) : ""};
}

class TextSink final : public VectorSink {
 public:
  TextSink(const AtomicFile& file, std::int64_t columns) : file_(file), columns_(columns) {}
  void append(const double* values, std::int64_t rows) override {
    for (std::int64_t i = 0; i < rows * columns_; ++i)
      file_.append(fmt::format("{:.17g}{}", values[i], (i + 1) % columns_ == 0 ? '\n' : ' '));
  }
  void close() override { file_.close(); }

 private:
  OutputFile file_;
  std::int64_t columns_;
};

}  // namespace

bool accepts_text_vector(const std::filesystem::path& path) { return uncompressed_name(path).extension() == ".txt"; }

VectorContents open_text_vector(const std::filesystem::path& path, const VectorChoice& choice, std::int64_t columns) {
  if (!choice.object.empty())
    throw Error(ErrorKind::input,
                fmt::format("{}: a text file holds one vector; leave out :{}", path.string(), choice.object));
  const auto source = TextSource::open(path, {});
  constexpr std::int64_t kShortest = 2;  // "1\n"
  ReadLimits{}.require_memory(8 * (source->most_text_bytes() / kShortest + 1), path);
  auto values = std::make_shared<HostVector<double>>();
  ReadLimits one_piece;  // at a time: the place of an entry depends on those before it
  one_piece.piece_bytes = std::numeric_limits<std::int64_t>::max();
  one_piece.batch_bytes = 1 << 20;
  for_each_piece(*source, 0, one_piece, "read vector", {}, [&](std::string_view piece) {
    for (std::size_t begin = 0; begin < piece.size();) {
      const std::size_t end = piece.find('\n', begin) + 1;
      const char* const first = matrix_market::skip_blanks(piece.data() + begin);
      if (*first != '\n' && *first != '#' && *first != '%')
        parse_row(std::string(piece.substr(begin, end - begin)), columns, first, *values);
      begin = end;
    }
  });
  source->file().require_unchanged();
  columns = std::max<std::int64_t>(1, columns);  // of a file without lines
  return {std::ssize(*values) / columns, columns, [values, columns](std::int64_t begin, std::int64_t end) {
            return HostVector<double>(values->begin() + begin * columns, values->begin() + end * columns);
          }};
}

std::unique_ptr<VectorSink> make_text_sink(const AtomicFile& file, std::int64_t, std::int64_t columns) {
  return std::make_unique<TextSink>(file, columns);
}

}  // namespace shardmat
