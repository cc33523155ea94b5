#include "tools/serve/http/http_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

namespace shardmat::serve {
namespace {

/// How long a connection without a request stays open while the server drains: a request may be on its way.
constexpr double kDrainSeconds = 0.1;
/// Pause after an error, as when no descriptor is left.
constexpr double kAcceptRetrySeconds = 0.05;

/// Above the limits of connections, for requests about health alone. Further ones take the place of the oldest.
constexpr std::size_t kHealthConnections = 16;

/// Tells a client why it is sent away, if its socket takes that at once.
void send_away(int socket, bool tls) {
  constexpr std::string_view kReply =
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nContent-Length: 89\r\n"
      "Connection: close\r\n\r\n"
      "{\"error\":\"there are too many connections; try again later\",\"code\":\"too_many_connections\"}";
  if (!tls) send(socket, kReply.data(), kReply.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  close(socket);
}

}  // namespace

/// A listener with the wait for its next connection.
struct HttpServer::Door {
  Door(HttpShared& shared, Listener open, const Tls* context)
      : listener(std::move(open)), tls(context), retry(shared.loop) {}

  void wait(const std::shared_ptr<HttpShared>& shared) {
    watch = std::make_unique<ReadWatch>(shared->loop, listener.descriptor(), [this, shared] {
      if (accept_all(shared)) return;
      retry.start(kAcceptRetrySeconds, [this, shared] { wait(shared); });
      watch.reset();
    });
  }

  /// False if connections cannot be taken for now.
  bool accept_all(const std::shared_ptr<HttpShared>& shared) {
    Peer peer;
    for (int socket = 0; (socket = listener.accept(peer)) >= 0;) {
      peer.has_tls = tls != nullptr;
      const bool counted = shared->count.add(peer);
      if (counted || shared->for_health.size() < 2 * kHealthConnections) {
        serve_connection(socket, peer, shared, tls, !counted);
        if (shared->for_health.size() > kHealthConnections) send_away_oldest_for_health(*shared);
        continue;
      }
      send_away(socket, tls != nullptr);
      RequestHead head;
      head.peer = peer;
      shared->record({head, 503, "too_many_connections", 0, 0, 0, std::nullopt, false});
    }
    return errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
  }

  Listener listener;
  const Tls* tls;
  std::unique_ptr<ReadWatch> watch;
  Alarm retry;
};

HttpServer::HttpServer(EventLoop& loop, const HttpLimits& limits, Router router, CheckAgain check_again, Recorder recorder)
    : shared_(std::make_shared<HttpShared>(loop, limits, std::move(router), std::move(check_again), std::move(recorder))),
      drain_timer_(loop) {}

HttpServer::~HttpServer() {
  shared_->empty = nullptr;
  drop_requests(*shared_);
}

void HttpServer::add(Listener listener, const Tls* tls) {
  doors_.push_back(std::make_unique<Door>(*shared_, std::move(listener), tls));
  doors_.back()->wait(shared_);
}

void HttpServer::check_rights() { serve::check_rights(*shared_); }

HttpServer::Connections HttpServer::connections() const {
  const ConnectionCount& count = shared_->count;
  return {count.all() - count.tcp(), count.tcp(), shared_->for_health.size(), shared_->limits.connections};
}

void HttpServer::drain(std::function<void()> empty) {
  shared_->draining = true;
  shared_->empty = std::move(empty);
  for (const auto& door : doors_) door->accept_all(shared_);  // what connected before is served
  doors_.clear();
  if (shared_->open.empty()) return shared_->loop.post(std::exchange(shared_->empty, nullptr));
  drain_timer_.start(kDrainSeconds, [shared = shared_] {
    for (HttpConnection* connection : shared->open) close_if_idle(*connection);
  });
}

}  // namespace shardmat::serve
