#include "tools/serve/handlers/api.h"

#include "tools/serve/gate/sessions.h"
#include "tools/serve/ranks/ranks.h"
#include "tools/serve/words/utc.h"

namespace shardmat::serve {

Api::Api(const Parts& parts) : gate_(parts.gate) {
  for (const auto add : kRouteGroups) add(routes_, parts);
}

Accepted Api::route(RequestHead& head) {
  if (auto problem = gate_.find_client(head)) return problem_reply(std::move(*problem));
  if (auto problem = gate_.check_source(head)) return problem_reply(std::move(*problem));
  head.reply_fields = gate_.fields_for_pages(head);
  if (head.method == "OPTIONS") return Gate::options_reply(head);
  const auto target = parse_target(head.target);
  if (!target) return problem_reply(400, "malformed", "the path, or its query, is malformed");
  auto found = routes_.find(head, *target);
  auto* match = std::get_if<Routes::Match>(&found);
  if (match != nullptr) head.op = match->route->op, head.matrix = match->call.matrix, head.scope = match->route->scope;
  if (match == nullptr || match->route->scope != Scope::none) {
    if (auto refusal = gate_.identify(head, now(), seconds_since_1970())) return std::move(*refusal);
  } else if (match->route->asks_who) {
    static_cast<void>(gate_.identify(head, now(), seconds_since_1970()));  // whoever it is gets an answer
  }
  if (match == nullptr) return std::move(std::get<Reply>(found));
  if (match->route->scope != Scope::none) {
    if (auto problem = Gate::check_rights(*head.rights, head.scope, head.matrix)) return problem_reply(std::move(*problem));
    if (auto problem = gate_.check_quota(head, now())) return problem_reply(std::move(*problem));
  }
  return match->route->handle(match->call);
}

std::optional<Reply> Api::check_again(const RequestHead& head) {
  if (!head.rights || head.scope == Scope::none) return std::nullopt;
  const bool is_over = head.session && head.session->is_over(now());
  if (head.rights->is_revoked() || is_over || head.rights->expires <= seconds_since_1970()) return Gate::revoked();
  if (auto problem = Gate::check_rights(*head.rights, head.scope, head.matrix)) return problem_reply(std::move(*problem));
  return std::nullopt;
}

}  // namespace shardmat::serve
