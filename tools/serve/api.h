// Finds the route of a request and lets it decide what becomes of the request.
//
// Threads: the thread of the event loop.
#pragma once

#include "tools/serve/route_groups.h"
#include "tools/serve/routes.h"

namespace shardmat::serve {

class Api {
 public:
  explicit Api(const Parts& parts);

  const Routes& routes() const { return routes_; }
  /// The Router of the server. Jobs must not outlive this object.
  Accepted route(const RequestHead& head) const;

 private:
  Routes routes_;
};

}  // namespace shardmat::serve
