// What a request for a batch of many small matrices asks for.
//
// Threads: any thread; there is no shared state.
#pragma once

#include <limits>
#include <optional>
#include <variant>

#include "partition/batched/batch_shape.h"
#include "tools/serve/http/http_message.h"
#include "tools/serve/http/names.h"
#include "tools/serve/words/priority.h"
#include "tools/serve/words/problem.h"

namespace shardmat::serve {

struct BatchQuery {
  BatchShape shape;
  bool alone = false;  ///< it is not merged with batches of others
  std::optional<Priority> priority;
  double deadline_seconds = std::numeric_limits<double>::infinity();
};

/// Or why the query is malformed (400), or the body has another length than it says (422).
std::variant<Problem, BatchQuery> read_batch_query(const RequestHead& head, const Target& target);

}  // namespace shardmat::serve
