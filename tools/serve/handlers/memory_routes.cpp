// POST /v1/memory: memory that a client of the Unix socket shares with the ranks for as long as its connection lasts.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "tools/serve/handlers/route_groups.h"
#include "tools/serve/handlers/text_job.h"
#include "tools/serve/observe/service_json.h"

namespace shardmat::serve {
namespace {

using Done = std::function<void(Reply)>;

std::optional<std::uint64_t> bytes_of(const Target& target) {
  if (target.query.size() != 1 || target.query.begin()->first != "bytes") return std::nullopt;
  const auto bytes = parse_whole(target.query.begin()->second);
  if (!bytes || *bytes < 1) return std::nullopt;
  return static_cast<std::uint64_t>(*bytes);
}

void share(Service& service, const std::shared_ptr<ConnectionState>& connection, std::uint64_t bytes, const Done& done) {
  const auto shared = [weak = std::weak_ptr(connection), done](std::variant<Problem, std::shared_ptr<ClientMemory>> made) {
    if (auto* problem = std::get_if<Problem>(&made)) return done(problem_reply(std::move(*problem)));
    const auto here = weak.lock();
    if (!here) return;  // the client has left
    here->memory = std::get<1>(made);
    Reply reply = json_reply(201, {{"bytes", here->memory->bytes()}});
    reply.descriptor = here->memory->descriptor();
    reply.owner = here->memory;
    done(std::move(reply));
  };
  connection->memory.reset();  // one that was lost
  service.share_memory(bytes, shared);
}

Accepted post(Service& service, const Call& call) {
  if (!call.head.connection)
    return problem_reply(403, "unix_only", "memory is shared with clients of the Unix socket; others send bodies");
  const auto bytes = bytes_of(call.target);
  if (!bytes) return problem_reply(400, "malformed", "say how much: bytes=N, a whole number from 1 on");
  if (auto problem = service.why_no_new_work()) return problem_reply(std::move(*problem));
  if (const auto& memory = call.head.connection->memory; memory && !memory->lost)
    return problem_reply(
        409, "has_memory",
        fmt::format("this connection has {} bytes already; another connection may have its own", memory->bytes()));
  return take_text(call, [&service, connection = call.head.connection, bytes = *bytes](std::string_view, const Done& done) {
    share(service, connection, bytes, done);
  });
}

}  // namespace

void add_memory_routes(Routes& routes, const Parts& parts) {
  Service& service = parts.service;
  routes.add({"POST", "/v1/memory", Scope::multiply, "share_memory",
              [&service](const Call& call) { return post(service, call); }, true});
}

}  // namespace shardmat::serve
