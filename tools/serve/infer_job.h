// POST /v2/models/NAME/infer: the product y = alpha·A·x as an inference of the Open Inference Protocol.
//
// Threads: the thread of the event loop.
#pragma once

#include "tools/serve/routes.h"
#include "tools/serve/service.h"

namespace shardmat::serve {

/// The matrix, if it can be multiplied now; otherwise why not.
std::variant<const Matrix*, Problem> usable_matrix(const Service& service, const std::string& name);

Accepted accept_infer(Service& service, const Call& call);

}  // namespace shardmat::serve
