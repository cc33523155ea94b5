// Why a request failed.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace shardmat::serve {

/// Why a request failed, for people and for programs.
struct Problem {
  int status = 500;
  std::string code;  ///< one word
  std::string text;
  double retry_after_seconds = 0;                ///< 0: trying again does not help
  int rank = -1;                                 ///< the rank that was lost, if any and known
  std::vector<std::int64_t> missing_bytes = {};  ///< of memory, by rank; empty if no rank lacks any
};

inline Problem make_problem(int status, std::string code, std::string text, double retry_after_seconds = 0) {
  Problem problem;
  problem.status = status, problem.code = std::move(code), problem.text = std::move(text);
  problem.retry_after_seconds = retry_after_seconds;
  return problem;
}

}  // namespace shardmat::serve
