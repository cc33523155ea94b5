#include "tools/serve/api.h"

namespace shardmat::serve {

Api::Api(const Parts& parts) {
  for (const auto add : kRouteGroups) add(routes_, parts);
}

Accepted Api::route(const RequestHead& head) const {
  const auto target = parse_target(head.target);
  if (!target) return problem_reply(400, "malformed", "the path, or its query, is malformed");
  auto found = routes_.find(head, *target);
  if (auto* reply = std::get_if<Reply>(&found)) return std::move(*reply);
  const Routes::Match& match = std::get<Routes::Match>(found);
  return match.route->handle(match.call);
}

}  // namespace shardmat::serve
