#include "tools/serve/handlers/job_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tools/serve/handlers/job_query.h"
#include "tools/serve/http/names.h"

namespace shardmat::serve {
namespace {

/// Eigenvectors that a vector of the service may have.
constexpr std::int64_t kMostPairs = 256;

/// The wanted eigenvalues; of both ends, of each.
std::variant<Problem, std::int64_t> columns_of_eigen(const JobQuery& query, std::int64_t rows) {
  const auto given = query.given.find("count"), which = query.given.find("which");
  const auto count = parse_whole(given == query.given.end() ? "1" : given->second);
  const bool both = which != query.given.end() && which->second == "both";
  const std::int64_t ends = both ? 2 : 1;
  if (!count || *count < 1 || *count > kMostPairs / ends || *count > rows)
    return make_problem(400, "malformed",
                        fmt::format("count must be a whole number from 1 to {}", std::min(rows, kMostPairs / ends)));
  return both ? *count + std::min(*count, rows - *count) : *count;
}

}  // namespace

std::span<const JobKind> job_kinds() {
  static const std::vector<JobKind> kinds{
      {.name = "solve",
       .b = Takes::required,
       .merges = true,
       .keeps_iterates = true,
       .method = "solver",
       .parameters = {"k", "b", "x0", "b_at", "x0_at", "x_at", "keep", "alone"}},
      {.name = "eigen", .method = "method", .parameters = {"mass", "x0", "x_at"}, .columns = columns_of_eigen},
      {.name = "pagerank", .b = Takes::optional, .parameters = {"k", "b", "b_at", "x_at", "keep"}},
  };
  return kinds;
}

}  // namespace shardmat::serve
