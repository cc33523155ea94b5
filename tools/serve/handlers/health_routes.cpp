// Is the service alive, can it multiply, and what are its ranks?
#include <nlohmann/json.hpp>

#include "tools/serve/handlers/route_groups.h"
#include "tools/serve/observe/service_json.h"

namespace shardmat::serve {

void add_health_routes(Routes& routes, const Parts& parts) {
  Service& service = parts.service;
  routes.add({"GET", "/v2/health/live", Scope::none, "health", [](const Call&) -> Accepted {
                return json_reply(200, {{"live", true}});
              }});
  routes.add({"GET", "/v2/health/ready", Scope::none, "health", [&service](const Call&) -> Accepted {
                if (const auto problem = service.why_not_ready()) return problem_reply(*problem);
                return json_reply(200, {{"ready", true}});
              }});
  routes.add({"GET", "/v1/ranks", Scope::read, "ranks",
              [&service](const Call& call) -> Accepted { return json_reply(200, ranks_json(service, call.rights())); }});
}

}  // namespace shardmat::serve
