// HTTP/1.1 over sockets: reads headers within limits, bodies straight to where the router wants them, and sends replies. One
// of the two files that know Beast and Asio.
//
// Threads: the thread of the event loop.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tools/serve/event_loop.h"
#include "tools/serve/http_message.h"

namespace shardmat::serve {

class HttpServer {
 public:
  HttpServer(EventLoop& loop, Router router);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Listens on a Unix socket that only this user can open. Throws Error(resources) if that is impossible, or if another
  /// server listens there; a socket that nobody listens on is replaced.
  void listen_unix(const std::string& path);

  /// Takes no more connections. Those that are open end after the request that they are at; `empty` is called after the
  /// last.
  void drain(std::function<void()> empty);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace shardmat::serve
