// One client's connection: reads headers within limits, bodies straight to where the router wants them, and sends replies.
// With event_loop.cpp one of the two files that know Asio; with head_parser.cpp one of the two that know Beast.
//
// Threads: the thread of the event loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>

#include "tools/serve/http/connection_count.h"
#include "tools/serve/http/event_loop.h"
#include "tools/serve/http/http_message.h"
#include "tools/serve/http/tls.h"

namespace shardmat::serve {

struct HttpLimits {
  std::size_t connections = 1024, connections_per_address = 64;
  double header_seconds = 10;  ///< for a header, from its first byte on
  double body_seconds = 10;    ///< then a body, and the taking of a reply, must go on with 64 KiB a second
};

class HttpConnection;

/// What the connections of a server share.
struct HttpShared {
  HttpShared(EventLoop& event_loop, const HttpLimits& http_limits, Router route, CheckAgain check, Recorder recorder);
  HttpShared(const HttpShared&) = delete;
  HttpShared& operator=(const HttpShared&) = delete;

  std::string new_request_id();
  void remove(HttpConnection* connection, const Peer& peer, bool health_only);

  EventLoop& loop;
  HttpLimits limits;
  Router router;
  CheckAgain check_again;
  Recorder record;
  ConnectionCount count;
  std::unordered_set<HttpConnection*> open;
  std::deque<HttpConnection*> for_health;  ///< above the limits, and for health requests alone; the oldest first
  bool draining = false;
  std::function<void()> empty;  ///< called when the last connection ends while the server drains

 private:
  const std::string id_prefix_;
  std::uint64_t requests_ = 0;
};

/// Serves the connected socket until one side ends it; the connection then vanishes by itself. It counts as open in
/// `shared.count` already, unless it is for health requests alone. `tls` may be null.
void serve_connection(int socket, const Peer& peer, const std::shared_ptr<HttpShared>& shared, const Tls* tls,
                      bool health_only);
/// Ends the oldest connection that is for health requests alone and has sent none yet.
void send_away_oldest_for_health(const HttpShared& shared);
/// Tokens have changed: ends the requests and streams that are not allowed any more.
void check_rights(const HttpShared& shared);

/// Drops the requests that are under way, with what they hold of the service. REQUIRES: the event loop runs no more.
void drop_requests(const HttpShared& shared);

/// Ends the connection if no request is under way.
void close_if_idle(HttpConnection& connection);

}  // namespace shardmat::serve
