// Finds the route of a request and lets it decide what becomes of the request, once the gate has let it in.
//
// Threads: the thread of the event loop.
#pragma once

#include "tools/serve/gate/gate.h"
#include "tools/serve/handlers/route_groups.h"
#include "tools/serve/http/routes.h"

namespace shardmat::serve {

class Api {
 public:
  explicit Api(const Parts& parts);

  const Routes& routes() const { return routes_; }
  /// The Router of the server. Jobs must not outlive this object.
  Accepted route(RequestHead& head);
  /// Tokens have changed: why the client of a request under way may not go on.
  static std::optional<Reply> check_again(const RequestHead& head);

 private:
  Gate& gate_;
  Routes routes_;
};

}  // namespace shardmat::serve
