// PUT /v1/matrices/NAME/values: the body replaces the values of the matrix. What is larger than a part of the arena comes in
// pieces, which the ranks keep; the matrix changes with the last one.
//
// Threads: the thread of the event loop.
#pragma once

#include "tools/serve/http/routes.h"
#include "tools/serve/ranks/service.h"

namespace shardmat::serve {

/// Takes room for a piece, or says why not. The job must not outlive the service.
Accepted accept_values(Service& service, const Call& call);

}  // namespace shardmat::serve
