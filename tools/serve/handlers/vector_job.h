// The numbers of a vector that stays on the ranks: PUT /v1/vectors/ID brings them, GET answers with them. Columns come one
// after another.
//
// Threads: the thread of the event loop.
#pragma once

#include "tools/serve/http/routes.h"
#include "tools/serve/ranks/service.h"

namespace shardmat::serve {

/// They take room for the vector, or say why not. The jobs must not outlive the service.
Accepted accept_write(Service& service, const Call& call);
Accepted accept_read(Service& service, const Call& call);
/// The same of a vector that the path does not name.
Accepted accept_read(Service& service, const Call& call, const std::string& id);

}  // namespace shardmat::serve
