// The kinds of jobs as clients ask for them: POST /v1/matrices/NAME/KIND. A new kind is an entry of the list, and what the
// ranks do for it (runtime/service/engine/kind_of_job.h).
//
// Threads: any thread; there is no shared state.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tools/serve/words/problem.h"

namespace shardmat::serve {

struct JobQuery;

struct JobKind {
  std::string name;  ///< of its path, and for the ranks
  /// It takes a b as its body or as a vector, and answers with x; else it takes no numbers, and answers with the job.
  bool has_b = true;
  bool merges = false;                  ///< the ranks may iterate with the columns of several of them at once
  std::string method;                   ///< the name of the setting that the parameter `method` is
  std::vector<std::string> parameters;  ///< beside those of all kinds and the settings
  /// Columns of X, of a kind without b; or 400.
  std::variant<Problem, std::int64_t> (*columns)(const JobQuery& query, std::int64_t rows) = nullptr;
};

std::span<const JobKind> job_kinds();

}  // namespace shardmat::serve
