// Takes connections on all sockets on which the service listens.
//
// Threads: the thread of the event loop.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "tools/serve/http/event_loop.h"
#include "tools/serve/http/http_connection.h"
#include "tools/serve/http/listener.h"

namespace shardmat::serve {

class HttpServer {
 public:
  HttpServer(EventLoop& loop, const HttpLimits& limits, Router router, CheckAgain check_again, Recorder recorder);
  /// REQUIRES: the event loop runs no more.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Takes the listener's connections from now on. With TLS if `tls` is not null; it must outlive the server.
  void add(Listener listener, const Tls* tls);

  /// Tokens have changed: ends the requests and streams that are not allowed any more.
  void check_rights();

  /// Connections that are open.
  struct Connections {
    std::size_t on_unix_socket = 0, on_addresses = 0;
    std::size_t for_health = 0;  ///< above the limits
    std::size_t most = 0;        ///< limit of the first two together
  };
  Connections connections() const;

  /// Takes no more connections. Those that are open end after the request that they are at; `empty` is called after the
  /// last.
  void drain(std::function<void()> empty);

 private:
  struct Door;
  std::shared_ptr<HttpShared> shared_;
  std::vector<std::unique_ptr<Door>> doors_;
  Alarm drain_timer_;
};

}  // namespace shardmat::serve
