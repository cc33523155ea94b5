// POST /v1/matrices/NAME/solve: a job that solves A·X = B, for a B of the body or a vector that stays on the ranks.
//
// Threads: the thread of the event loop.
#pragma once

#include "tools/serve/http/routes.h"
#include "tools/serve/ranks/jobs.h"

namespace shardmat::serve {

/// Takes room for b and x, or says why not. A body of JSON has the parameters in place of the query, and names b as a
/// vector.
Accepted accept_solve(EventLoop& loop, Service& service, Jobs& jobs, const Call& call);

}  // namespace shardmat::serve
