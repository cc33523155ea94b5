#include "tools/cli/growing_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "kernels/base/error.h"

namespace shardmat::tools {

bool grows(const std::string& matrix) { return matrix.find('{') != std::string::npos; }

std::string on_ranks(const std::string& matrix, int ranks) {
  std::string result;
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    if (matrix[i] != '{') {
      result += matrix[i];
      continue;
    }
    const std::size_t end = std::min(matrix.find('}', i), matrix.size());
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(matrix.data() + i + 1, matrix.data() + end, number);
    if (end == matrix.size() || error != std::errc() || stop != matrix.data() + end || number < 1 || number > 1 << 30)
      throw Error(ErrorKind::usage, fmt::format("{}: braces hold a whole number that grows with the ranks, as in "
                                                "poisson27:n=128,nz={{64}}",
                                                matrix));
    result += std::to_string(number * ranks);
    i = end;
  }
  return result;
}

}  // namespace shardmat::tools
