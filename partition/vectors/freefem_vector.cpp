// Vectors as FreeFEM prints them (ofstream("x.txt") << x): the size and a tab on the first line, then five numbers a line,
// with tabs before and behind them. A vector is read as a whole when it is opened.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/base/error.h"
#include "partition/files/first_bytes.h"
#include "partition/readers/text_numbers.h"
#include "partition/readers/text_source.h"
#include "partition/vectors/vector_formats.h"

namespace shardmat {

bool accepts_freefem_vector(const std::filesystem::path& path) {
  const std::string bytes = first_bytes(path, 32);
  const std::size_t digits = std::min(bytes.size(), bytes.find_first_not_of("0123456789"));
  const std::string_view rest = std::string_view(bytes).substr(digits);
  return digits > 0 && (rest.starts_with("\t\n\t") || rest.starts_with("\t\r\n\t"));
}

VectorContents open_freefem_vector(const std::filesystem::path& path, const VectorChoice& choice, std::int64_t columns) {
  const std::string& object = choice.object;
  if (!object.empty() || columns > 1)
    throw Error(ErrorKind::input,
                fmt::format("{}: FreeFEM prints one vector to a file; {}", path.string(),
                            object.empty() ? fmt::format("{} columns are needed", columns) : "leave out :" + object));
  const auto source = TextSource::open(path, {});
  LineCursor lines(*source);
  std::string_view line = lines.next();
  auto values = std::make_shared<HostVector<double>>();
  std::int64_t size = 0;
  try {
    text_numbers::require_line_end(
        text_numbers::parse_whole(line.data(), "size", 0, std::numeric_limits<std::int64_t>::max(), size));
    if (size > source->most_text_bytes() / 2)  // a digit and a tab
      lines.fail(
          fmt::format("its first line promises {} numbers, more than the file has room for; it is truncated, print it "
                      "again",
                      size));
    ReadLimits{}.require_memory(8 * size, path);
    values->reserve(static_cast<std::size_t>(size));
    while (!(line = lines.next()).empty())
      for (const char* p = matrix_market::skip_blanks(line.data()); *p != '\n'; p = matrix_market::skip_blanks(p)) {
        if (*p == '(') lines.fail("its numbers are complex; print the real and the imaginary part as two vectors");
        if (std::ssize(*values) == size) lines.fail(fmt::format("there are more than the promised {} numbers", size));
        values->emplace_back();
        p = text_numbers::parse_real(p, true, values->back());
      }
  } catch (const LineFault& fault) {
    lines.fail(fault.what);
  }
  if (std::ssize(*values) != size)
    throw Error(ErrorKind::input,
                fmt::format("{}: its first line promises {} numbers, and it has {}; it is truncated, print it "
                            "again",
                            path.string(), size, values->size()));
  source->file().require_unchanged();
  return {size, 1, [values](std::int64_t begin, std::int64_t end) {
            return HostVector<double>(values->begin() + begin, values->begin() + end);
          }};
}

}  // namespace shardmat
