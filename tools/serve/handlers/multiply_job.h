// POST /v1/matrices/NAME/multiply: y = alpha·A·x + beta·y, for x and y of the body or of vectors that stay on the ranks.
//
// Threads: the thread of the event loop.
#pragma once

#include <memory>
#include <variant>

#include "tools/serve/http/http_message.h"
#include "tools/serve/http/names.h"
#include "tools/serve/ranks/service.h"

namespace shardmat::serve {

/// Takes room for x and y, into which the body goes, or says why not. The job must not outlive the service.
std::variant<Problem, std::unique_ptr<Job>> accept_multiply(Service& service, const RequestHead& head, const Target& target);

}  // namespace shardmat::serve
