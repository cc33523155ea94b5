// What the service tells about itself: figures for Prometheus, events as they happen, and the description of its paths.
#include "tools/serve/handlers/openapi.h"
#include "tools/serve/handlers/route_groups.h"
#include "tools/serve/observe/events.h"
#include "tools/serve/observe/metrics.h"

namespace shardmat::serve {
namespace {

/// The figures name all matrices, so they are not for tokens of some of them. Names of other tokens are left out.
Accepted metrics(const Metrics& figures, const Call& call) {
  if (!call.rights().may_use_all())
    return problem_reply(403, "wrong_matrix", "the figures are of all matrices, and the token is for some of them");
  Reply reply;
  reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
  reply.text = figures.text(call.rights());
  return reply;
}

Reply description() {
  Reply reply;
  reply.text = openapi_text();
  return reply;
}

Accepted listen(Events& events, const Call& call) {
  Reply reply;
  reply.content_type = "text/event-stream";
  reply.fields.emplace_back("Cache-Control", "no-store");
  reply.stream = events.listen(call.head.rights);
  return reply;
}

}  // namespace

void add_observe_routes(Routes& routes, const Parts& parts) {
  routes.add({"GET", "/metrics", Scope::read, "metrics",
              [&figures = parts.metrics](const Call& call) { return metrics(figures, call); }});
  routes.add({"GET", "/openapi.json", Scope::none, "description", [](const Call&) -> Accepted { return description(); }});
  routes.add({"GET", "/v1/events", Scope::read, "events",
              [&events = parts.events](const Call& call) { return listen(events, call); }});
}

}  // namespace shardmat::serve
