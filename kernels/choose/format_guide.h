// Recommends a textbook format for a matrix, by the guide at the end of the course text "Parallel patterns: sparse
// computation", written as rules over pattern statistics. It is an explanation for people; the kernel that runs is chosen by
// cost_model.h and by measuring.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "kernels/matrix/pattern.h"
#include "kernels/matrix/statistics.h"

namespace shardmat {

struct Recommendation {
  std::string format;  ///< one of the available formats
  std::string reason;  ///< one line
};

/// The first available format that suits the matrix's class; csr if none does. `pattern` and `rows` describe the same
/// matrix.
Recommendation recommended_format(const PatternStatistics& pattern, const RowStatistics& rows,
                                  std::span<const std::string_view> available);

/// The same among all formats of the registry.
Recommendation recommended_format(const PatternStatistics& pattern, const RowStatistics& rows);

}  // namespace shardmat
