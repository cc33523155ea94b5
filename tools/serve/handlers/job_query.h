// What a request for a job asks for, in its query or as JSON.
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

#include "tools/serve/handlers/job_kinds.h"
#include "tools/serve/words/priority.h"
#include "tools/serve/words/problem.h"

namespace shardmat::serve {

struct JobQuery {
  std::string settings;                      ///< "solver=cg rtol=1e-10"
  std::map<std::string, std::string> given;  ///< the same, by name
  std::optional<std::int64_t> columns;
  std::string type;                          ///< empty: the matrix's
  std::string b, x0;                         ///< ids of vectors; x0 may be that of a job. Without x0, x begins with zeros
  std::optional<std::uint64_t> b_at, x0_at;  ///< or where they are in the client's memory, in bytes
  std::optional<std::uint64_t> x_at;         ///< where x is written there before the answer
  bool b_is_body = false;
  double wait_seconds = 0;
  double limit_seconds = std::numeric_limits<double>::infinity();
  bool keeps = false;         ///< the job stays after its x was the answer
  std::optional<bool> alone;  ///< it is not merged with others, or whenever others wait; none: where that is faster
  std::string mass;           ///< name of the matrix M of K·x = λ·M·x
  std::optional<Priority> priority;

  bool has_b() const { return b_is_body || !b.empty() || b_at; }
};

/// 400 for what is no parameter of this kind, or has no such value. `settings`: the names of its settings; the ranks check
/// their values.
std::variant<Problem, JobQuery> read_job_query(const JobKind& kind, const std::map<std::string, std::string>& pairs,
                                               std::span<const std::string> settings);
/// The fields of a JSON object as such pairs. Throws Error(input), which says what is wrong.
std::map<std::string, std::string> pairs_of_json(std::string_view text);

}  // namespace shardmat::serve
