#include "tools/client/client_channel.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "kernels/base/error.h"

namespace shardmat::tools {
namespace {

/// After a failed call on a socket with a deadline.
bool is_late() { return errno == EAGAIN || errno == EWOULDBLOCK; }

/// Of all later calls on this socket.
void set_deadline(int socket, double seconds) {
  if (seconds == 0) return;
  timeval longest{};
  longest.tv_sec = static_cast<time_t>(seconds);
  longest.tv_usec = std::max<suseconds_t>(1, static_cast<suseconds_t>((seconds - std::floor(seconds)) * 1e6));
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof longest);
}

class SocketChannel final : public ClientChannel {
 public:
  explicit SocketChannel(int socket) : socket_(socket) {}
  ~SocketChannel() override { close(socket_); }
  SocketChannel(const SocketChannel&) = delete;
  SocketChannel& operator=(const SocketChannel&) = delete;

  bool write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && is_late()) fail_late();
      if (sent < 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  std::size_t read(char* to, std::size_t most) override {
    while (true) {
      const ssize_t got = recv(socket_, to, most, 0);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (is_late()) fail_late();
      if (errno != EINTR) return 0;
    }
  }

 private:
  int socket_;
};

[[noreturn]] void fail(const std::string& where, const char* why, const char* option) {
  throw Error(ErrorKind::resources,
              fmt::format("no service listens on {} ({}); start it with: shardmat serve --library DIR", where, why), option);
}

}  // namespace

void fail_late() {
  throw Error(ErrorKind::rank_lost, "the service has not answered in time: it is stopped, or busy", "timeout");
}

ServerUrl parse_server_url(const std::string& text) {
  const auto wrong = [&]() -> ServerUrl {
    throw Error(ErrorKind::usage, fmt::format("{} is no address of a service; give one as http://127.0.0.1:8980", text),
                "url");
  };
  ServerUrl url;
  url.tls = text.rfind("https://", 0) == 0;
  if (!url.tls && text.rfind("http://", 0) != 0) return wrong();
  url.authority = text.substr(url.tls ? 8 : 7);
  if (!url.authority.empty() && url.authority.back() == '/') url.authority.pop_back();
  const std::size_t bracket = url.authority.rfind(']'), colon = url.authority.rfind(':');
  const bool has_port = colon != std::string::npos && (bracket == std::string::npos || colon > bracket);
  url.host = url.authority.substr(0, has_port ? colon : std::string::npos);
  url.port = has_port ? url.authority.substr(colon + 1) : url.tls ? "443" : "80";
  if (url.host.size() > 2 && url.host.front() == '[' && url.host.back() == ']')
    url.host = url.host.substr(1, url.host.size() - 2);
  const bool good_port =
      !url.port.empty() && url.port.size() <= 5 && url.port.find_first_not_of("0123456789") == std::string::npos;
  if (url.host.empty() || !good_port || url.authority.find_first_of("/?#@ \r\n") != std::string::npos) return wrong();
  return url;
}

std::unique_ptr<ClientChannel> connect_unix(const std::string& path, double seconds) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) fail(path, "the path is too long for a socket", "unix");
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const int connected = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto channel = std::make_unique<SocketChannel>(connected);
  set_deadline(connected, seconds);
  if (connect(connected, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    fail(path, std::strerror(errno), "unix");
  return channel;
}

std::unique_ptr<ClientChannel> connect_url(const ServerUrl& url, const std::string& authorities, double seconds) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (const int error = getaddrinfo(url.host.c_str(), url.port.c_str(), &hints, &found); error != 0)
    fail(url.authority, gai_strerror(error), "url");
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, freeaddrinfo);
  int error = 0;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const int connected = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    auto channel = std::make_unique<SocketChannel>(connected);
    set_deadline(connected, seconds);
    if (connect(connected, one->ai_addr, one->ai_addrlen) == 0) {
      const int yes = 1;
      setsockopt(connected, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      const linger none{1, 0};  // a client that ends resets the connection, so that the service drops what it did for it
      setsockopt(connected, SOL_SOCKET, SO_LINGER, &none, sizeof none);
      if (!url.tls) return channel;
      return add_tls(std::move(channel), connected, url.host, authorities);
    }
    error = errno;
  }
  fail(url.authority, std::strerror(error), "url");
}

}  // namespace shardmat::tools
