// POST /v1/matrices/NAME/KIND: a job of one of the kinds, for a B of the body or a vector that stays on the ranks if the
// kind has one.
//
// Threads: the thread of the event loop.
#pragma once

#include "tools/serve/handlers/job_kinds.h"
#include "tools/serve/http/routes.h"
#include "tools/serve/ranks/jobs.h"

namespace shardmat::serve {

/// Takes room for b and x, or says why not. A body of JSON has the parameters in place of the query, and names b as a
/// vector.
Accepted accept_job(EventLoop& loop, Service& service, Jobs& jobs, const JobKind& kind, const Call& call);

}  // namespace shardmat::serve
