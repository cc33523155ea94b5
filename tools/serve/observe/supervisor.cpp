#include "tools/serve/observe/supervisor.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tools/serve/words/log.h"

namespace shardmat::serve {
namespace {

constexpr double kAgainSeconds = 0.1;  ///< until what found no room is sent again

/// The variable's value, which is gone then.
std::string take_variable(const char* name) {
  const char* value = std::getenv(name);
  std::string text = value != nullptr ? value : "";
  unsetenv(name);
  return text;
}

}  // namespace

Supervisor::Supervisor(EventLoop& loop) : again_(loop), sign_(loop), address_(take_variable("NOTIFY_SOCKET")) {
  const std::string microseconds = take_variable("WATCHDOG_USEC"), process = take_variable("WATCHDOG_PID");
  if (address_.empty()) return;
  socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  status("starting the ranks and loading the matrices");
  if (process.empty() || process == std::to_string(getpid())) sign_seconds_ = std::atof(microseconds.c_str()) * 1e-6 / 2;
  if (sign_seconds_ > 0) give_sign();
}

Supervisor::~Supervisor() {
  if (socket_ >= 0) close(socket_);
}

void Supervisor::ready() { send("READY=1\nSTATUS=ready\n"); }
void Supervisor::stopping() { send("STOPPING=1\nSTATUS=ending: accepted requests are answered first\n"); }

void Supervisor::status(std::string_view text) {
  std::string line(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  send(fmt::format("STATUS={}\n", line));
}

void Supervisor::give_sign() {
  if (rest_.empty()) send("WATCHDOG=1\n");
  sign_.start(sign_seconds_, [this] { give_sign(); });
}

void Supervisor::send(const std::string& text) {
  if (address_.empty()) return;
  rest_ = text + rest_;  // systemd takes the first line of a name
  send_rest();
}

/// One datagram with all that systemd does not have yet.
void Supervisor::send_rest() {
  again_.cancel();
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  const std::size_t size = std::min(address_.size(), sizeof to.sun_path - 1);
  std::memcpy(to.sun_path, address_.data(), size);
  const bool has_file = to.sun_path[0] != '@';
  if (!has_file) to.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + size + (has_file ? 1 : 0));
  if (sendto(socket_, rest_.data(), rest_.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to), length) >= 0)
    return rest_.clear();
  if (errno == EAGAIN || errno == ENOBUFS) return again_.start(kAgainSeconds, [this] { send_rest(); });
  log_line(fmt::format("{}: systemd cannot be told how the service is: {} (NOTIFY_SOCKET)", std::exchange(address_, ""),
                       std::strerror(errno)));
}

}  // namespace shardmat::serve
