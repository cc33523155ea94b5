// What a request for a solve asks for, in its query or as JSON.
//
// Threads: any thread; there is no shared state.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "tools/serve/words/priority.h"
#include "tools/serve/words/problem.h"

namespace shardmat::serve {

struct SolveQuery {
  std::string settings;  ///< of the solver: "solver=cg rtol=1e-10"
  std::optional<std::int64_t> columns;
  std::string type;   ///< empty: the matrix's
  std::string b, x0;  ///< ids of vectors; x0 may be that of a job. Empty: b is the body, and x begins with zeros
  double wait_seconds = 0;
  double limit_seconds = std::numeric_limits<double>::infinity();
  bool keeps = false;  ///< the job stays after its x was the answer
  std::optional<Priority> priority;
};

/// 400 for what is no parameter, or has no such value. `settings`: the names of solver settings; the ranks check their
/// values.
std::variant<Problem, SolveQuery> read_solve_query(const std::map<std::string, std::string>& pairs,
                                                   std::span<const std::string> settings);
/// The fields of a JSON object as such pairs. Throws Error(input), which says what is wrong.
std::map<std::string, std::string> pairs_of_json(std::string_view text);

}  // namespace shardmat::serve
