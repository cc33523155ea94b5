// What the connections of a server share; http_connection.cpp has the connections.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <random>
#include <utility>

#include "tools/serve/http/http_connection.h"

namespace shardmat::serve {

HttpShared::HttpShared(EventLoop& event_loop, const HttpLimits& http_limits, Router route, CheckAgain check,
                       Recorder recorder)
    : loop(event_loop),
      limits(http_limits),
      router(std::move(route)),
      check_again(std::move(check)),
      record(std::move(recorder)),
      count(limits.connections, limits.connections_per_address),
      id_prefix_(fmt::format("{:08x}-", std::random_device{}())) {}

std::string HttpShared::new_request_id() {
  std::array<char, 16> digits;
  const auto end = std::to_chars(digits.begin(), digits.end(), ++requests_, 16).ptr;
  return id_prefix_ + std::string(digits.begin(), end);
}

void HttpShared::remove(HttpConnection* connection, const Peer& peer, bool health_only) {
  if (health_only) std::erase(for_health, connection);
  else count.remove(peer);
  open.erase(connection);
  if (draining && open.empty() && empty) loop.post(std::exchange(empty, nullptr));
}

}  // namespace shardmat::serve
