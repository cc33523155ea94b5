// The service's page: its files, the session of a browser that has given a token, and the stream of what the page shows.
#include <nlohmann/json.hpp>

#include "tools/serve/gate/gate.h"
#include "tools/serve/handlers/route_groups.h"
#include "tools/serve/handlers/text_job.h"
#include "tools/serve/observe/live.h"
#include "tools/serve/page/page.h"
#include "tools/serve/ranks/ranks.h"
#include "tools/serve/words/utc.h"

namespace shardmat::serve {
namespace {

Reply page(const Live& live, const Call& call) {
  const RequestHead& head = call.head;
  if (!head.rights || !head.rights->may(Scope::read)) return page_reply(head, nullptr);
  const auto now = live.now_json(*head.rights), ranks = live.ranks_json(*head.rights);
  const auto matrices = live.matrices_json(*head.rights), jobs = live.jobs_json(*head.rights);
  const PlainStatus status{now, ranks, matrices, jobs};
  return page_reply(head, &status);
}

/// The page asks by itself, and gets words for programs. A browser without JavaScript sends a form, and gets a page.
Accepted log_in(Gate& gate, const Call& call) {
  return take_text(call, [&gate, head = call.head](std::string_view body, const std::function<void(Reply)>& done) {
    const bool is_script = !head.field(kPageField).empty();
    const auto cookie = gate.log_in(head, form_field(body, "token"), now(), seconds_since_1970());
    if (!cookie) {
      constexpr const char* kWhy = "there is no such token";
      return done(is_script ? problem_reply(401, "unauthorized", kWhy) : page_reply(head, nullptr, kWhy));
    }
    Reply reply;
    reply.status = is_script ? 204 : 303;
    reply.fields = {{"Set-Cookie", *cookie}, {"Cache-Control", "no-store"}};
    if (!is_script) reply.fields.emplace_back("Location", "/");
    done(std::move(reply));
  });
}

Accepted log_out(Gate& gate, const Call& call) {
  return take_text(call, [&gate, head = call.head](std::string_view, const std::function<void(Reply)>& done) {
    if (!head.session) return done(problem_reply(401, "unauthorized", "there is no session to end"));
    Reply reply;
    reply.status = 204;
    reply.fields = {{"Set-Cookie", gate.log_out(head)}, {"Cache-Control", "no-store"}};
    done(std::move(reply));
  });
}

Accepted listen(Live& live, const Call& call) {
  Reply reply;
  reply.stream = live.listen(call.head);
  if (!reply.stream) {
    Problem problem = make_problem(503, "too_many_pages", "too many pages show the service already", 5);
    return problem_reply(std::move(problem));
  }
  reply.content_type = "text/event-stream";
  reply.fields.emplace_back("Cache-Control", "no-store");
  return reply;
}

}  // namespace

void add_page_routes(Routes& routes, const Parts& parts) {
  Gate& gate = parts.gate;
  Live& live = parts.live;
  Route front{"GET", "/", Scope::none, "page", [&live](const Call& call) -> Accepted { return page(live, call); }};
  front.asks_who = true;
  routes.add(std::move(front));
  routes.add({"GET", "/page/{file}", Scope::none, "page",
              [](const Call& call) -> Accepted { return page_file_reply(call.head, call.parameters.front()); }});
  routes.add({"POST", "/v1/session", Scope::none, "log_in", [&gate](const Call& call) { return log_in(gate, call); }});
  Route end{"DELETE", "/v1/session", Scope::none, "log_out", [&gate](const Call& call) { return log_out(gate, call); }};
  end.asks_who = true;
  routes.add(std::move(end));
  routes.add({"GET", "/v1/live", Scope::read, "live", [&live](const Call& call) { return listen(live, call); }});
}

}  // namespace shardmat::serve
