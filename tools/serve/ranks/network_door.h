// The front end's door for ranks on other hosts: a port that is open while the ranks start, and only if a rank at home has
// asked for it. Who knows the secret is a rank of this service; the secret goes there with the ranks' own messages.
//
// Threads: the thread of the event loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/service/wire/command.h"
#include "tools/serve/http/event_loop.h"

namespace shardmat::serve {

class NetworkDoor {
 public:
  /// Listens on all addresses of this host, at a port that the system chooses. `came` gets the socket of each connection,
  /// which it then owns and which has been greeted. Throws Error(resources).
  NetworkDoor(EventLoop& loop, std::function<void(int socket)> came);
  ~NetworkDoor();
  NetworkDoor(const NetworkDoor&) = delete;
  NetworkDoor& operator=(const NetworkDoor&) = delete;

  service::Invite invite(std::uint64_t arena_bytes) const;
  bool knows(const std::string& secret) const;

 private:
  void accept();

  EventLoop& loop_;
  std::function<void(int)> came_;
  std::string greeting_, secret_;
  std::uint16_t port_ = 0;
  int listener_ = -1, connections_ = 0;
  std::unique_ptr<ReadWatch> watch_;
};

}  // namespace shardmat::serve
