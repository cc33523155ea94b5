// Makes problems in one line.
#pragma once

#include <string>
#include <utility>

#include "tools/serve/http/http_message.h"

namespace shardmat::serve {

inline Problem make_problem(int status, std::string code, std::string text, double retry_after_seconds = 0) {
  Problem problem;
  problem.status = status, problem.code = std::move(code), problem.text = std::move(text);
  problem.retry_after_seconds = retry_after_seconds;
  return problem;
}

}  // namespace shardmat::serve
