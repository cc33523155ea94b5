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

/// Numbers that come with a request: as its body, as a vector, or in the client's memory.
enum class Takes { none, optional, required };

struct JobKind {
  std::string name;                       ///< of its path, and for the ranks
  Takes b = Takes::none;                  ///< a kind that takes b answers with x, any other with the job
  bool merges = false;                    ///< the ranks may iterate with the columns of several of them at once
  bool keeps_iterates = false;            ///< on new ranks it goes on from an x that was kept; else it begins anew
  std::string method{};                   ///< the name of the setting that the parameter `method` is; empty: there is none
  std::vector<std::string> parameters{};  ///< beside those of all kinds and the settings
  /// Columns of X, of a kind that takes no b; or 400.
  std::variant<Problem, std::int64_t> (*columns)(const JobQuery& query, std::int64_t rows) = nullptr;
};

std::span<const JobKind> job_kinds();

}  // namespace shardmat::serve
