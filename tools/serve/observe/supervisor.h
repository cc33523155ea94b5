// Tells systemd, as a unit of Type=notify wants it, when the service is ready, what it does, that it lives, and that it
// ends: datagrams to the socket that NOTIFY_SOCKET names. Without this variable nothing happens.
//
// Threads: the thread of the event loop.
#pragma once

#include <string>
#include <string_view>

#include "tools/serve/http/event_loop.h"

namespace shardmat::serve {

class Supervisor {
 public:
  /// Takes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment, so that no rank speaks for the service.
  /// Where systemd wants signs of life, the loop gives two in the time in which systemd waits for one.
  explicit Supervisor(EventLoop& loop);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// The service takes requests. Also after lost ranks were started again.
  void ready();
  /// One line for `systemctl status`.
  void status(std::string_view text);
  /// It ends, as it was asked to.
  void stopping();

 private:
  void send(const std::string& text);
  void send_rest();
  void give_sign();

  Alarm again_, sign_;
  std::string address_, rest_;  ///< of the socket, `@` for a name without a file; what found no room
  int socket_ = -1;
  double sign_seconds_ = 0;
};

}  // namespace shardmat::serve
