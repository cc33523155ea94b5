// POST /v2/models/NAME/infer: the product y = alpha·A·x as an inference of the Open Inference Protocol.
//
// Threads: the thread of the event loop.
#pragma once

#include "tools/serve/http/routes.h"
#include "tools/serve/ranks/service.h"

namespace shardmat::serve {

Accepted accept_infer(Service& service, const Call& call);

}  // namespace shardmat::serve
