// Which of the textbook formats suits a matrix: the guide at the end of the course text "Parallel patterns: sparse
// computation", as rules over the statistics of a pattern. It explains a matrix to people; what runs is chosen by
// cost_model.h and by measuring.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "kernels/matrix/pattern.h"
#include "kernels/matrix/statistics.h"

namespace shardmat {

struct Recommendation {
  std::string format;  ///< one of those available
  std::string reason;  ///< one line
};

/// The first available format of those that suit the matrix's class; csr if none is. `pattern` and `rows` are of one matrix.
Recommendation recommended_format(const PatternStatistics& pattern, const RowStatistics& rows,
                                  std::span<const std::string_view> available);

/// The same among all formats of the registry.
Recommendation recommended_format(const PatternStatistics& pattern, const RowStatistics& rows);

}  // namespace shardmat
