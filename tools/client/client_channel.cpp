#include "tools/client/client_channel.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "kernels/base/error.h"

namespace shardmat::tools {
namespace {

/// After a failed call on a socket that does not block.
bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK; }

class SocketChannel final : public ClientChannel {
 public:
  SocketChannel(int socket, const Patience& patience) : socket_(socket), patience_(patience) {}
  ~SocketChannel() override { close(socket_); }
  SocketChannel(const SocketChannel&) = delete;
  SocketChannel& operator=(const SocketChannel&) = delete;

  bool write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && !would_block()) return false;
      if (sent < 0) patience_.wait(socket_, POLLOUT);
      if (sent < 0) continue;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  std::size_t read(char* to, std::size_t most) override {
    while (true) {
      const ssize_t got = recv(socket_, to, most, 0);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (would_block()) patience_.wait(socket_, POLLIN);
      else if (errno != EINTR) return 0;
    }
  }

  bool has_ended() override {
    char byte;
    const ssize_t got = recv(socket_, &byte, 1, MSG_PEEK);
    return got == 0 || (got < 0 && !would_block() && errno != EINTR);
  }

  void wait_at_least(double seconds) override { patience_.wait_at_least(seconds); }

 private:
  int socket_;
  Patience patience_;
};

[[noreturn]] void fail(const std::string& where, const char* why, const char* option) {
  throw Error(ErrorKind::resources,
              fmt::format("no service listens on {} ({}); start it with: shardmat serve --library DIR", where, why), option);
}

/// Whether the socket is ready for `events` of poll() before `end`.
bool is_ready_by(int socket, short events, Patience::Clock::time_point end) {
  pollfd one{socket, events, 0};
  while (true) {
    int milliseconds = -1;
    if (end != Patience::Clock::time_point::max()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Patience::Clock::now()).count();
      if (left <= 0) return false;
      milliseconds = static_cast<int>(std::min<long long>(left, INT_MAX));
    }
    if (poll(&one, 1, milliseconds) > 0) return true;
  }
}

/// Connects a socket that does not block. Returns errno, 0 if it is connected, kLate at `end`.
constexpr int kLate = -1;
int connect_by(int socket, const sockaddr* address, socklen_t size, Patience::Clock::time_point end) {
  while (connect(socket, address, size) != 0) {
    if (errno == EINTR) continue;
    if (errno == EAGAIN) {  // a Unix socket whose queue is full, of which poll() says nothing
      if (Patience::Clock::now() >= end) return kLate;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      continue;
    }
    if (errno == EISCONN) return 0;
    if (errno != EINPROGRESS && errno != EALREADY) return errno;
    if (!is_ready_by(socket, POLLOUT, end)) return kLate;
    int error = 0;
    socklen_t bytes = sizeof error;
    getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &bytes);
    return error;
  }
  return 0;
}

/// When the next of `left` addresses must have answered, so that those behind it have as much time.
Patience::Clock::time_point share_of(Patience::Clock::time_point end, std::int64_t left) {
  const auto now = Patience::Clock::now();
  return end == Patience::Clock::time_point::max() ? end : now + (end - now) / left;
}

struct Addresses {
  Addresses() = default;
  ~Addresses() {
    if (first != nullptr) freeaddrinfo(first);
  }
  Addresses(const Addresses&) = delete;
  Addresses& operator=(const Addresses&) = delete;

  void find(const ServerUrl& url, int flags) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM, hints.ai_flags = flags;
    error = getaddrinfo(url.host.c_str(), url.port.c_str(), &hints, &first);
  }

  addrinfo* first = nullptr;
  int error = 0;  // of getaddrinfo()
};

/// Name servers that do not answer hold getaddrinfo() up for as long as the system is set to wait. So a thread of its own
/// asks them, and may still wait when the deadline has passed.
std::shared_ptr<const Addresses> find_addresses(const ServerUrl& url, const Patience& patience) {
  auto numeric = std::make_shared<Addresses>();
  numeric->find(url, AI_NUMERICHOST);
  if (numeric->error == 0) return numeric;
  struct LookUp {
    std::mutex mutex;
    std::condition_variable wake;
    Addresses addresses;
    bool over = false;
  };
  const auto shared = std::make_shared<LookUp>();
  std::thread([shared, url] {
    shared->addresses.find(url, 0);
    const std::lock_guard lock(shared->mutex);
    shared->over = true;
    shared->wake.notify_one();
  }).detach();
  std::unique_lock lock(shared->mutex);
  const auto is_over = [&] { return shared->over; };
  const Patience::Clock::time_point end = patience.end_of_step();
  if (end == Patience::Clock::time_point::max()) shared->wake.wait(lock, is_over);
  else if (!shared->wake.wait_until(lock, end, is_over))
    patience.fail(fmt::format("no name server has told the address of {} in time", url.host));
  if (shared->addresses.error != 0) fail(url.authority, gai_strerror(shared->addresses.error), "url");
  return {shared, &shared->addresses};
}

}  // namespace

void Patience::wait_at_least(double seconds) {
  if (step_seconds_ != 0) step_seconds_ = std::max(step_seconds_, seconds);
}

Patience::Clock::time_point Patience::end_of_step() const {
  constexpr double kMost = 1e9;  // more than a clock counts
  if (step_seconds_ == 0 || step_seconds_ > kMost) return end_;
  return std::min(end_,
                  Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(step_seconds_)));
}

void Patience::fail(const std::string& what) const { throw Error(ErrorKind::rank_lost, what, setting_); }

void Patience::wait(int socket, short events, Clock::time_point end) const {
  if (!is_ready_by(socket, events, end)) fail();
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

std::unique_ptr<ClientChannel> connect_unix(const std::string& path, const Patience& patience) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) fail(path, "the path is too long for a socket", "unix");
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const int connected = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  auto channel = std::make_unique<SocketChannel>(connected, patience);
  const int error =
      connect_by(connected, reinterpret_cast<const sockaddr*>(&address), sizeof address, patience.end_of_step());
  if (error == kLate) patience.fail();
  if (error != 0) fail(path, std::strerror(error), "unix");
  return channel;
}

std::unique_ptr<ClientChannel> connect_url(const ServerUrl& url, const std::string& authorities, const Patience& patience) {
  const std::shared_ptr<const Addresses> found = find_addresses(url, patience);
  std::int64_t left = 0;
  for (const addrinfo* one = found->first; one != nullptr; one = one->ai_next) ++left;
  const Patience::Clock::time_point end = patience.end_of_step();
  int error = 0;
  bool is_late = false;
  for (const addrinfo* one = found->first; one != nullptr; one = one->ai_next, --left) {
    const int connected = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    auto channel = std::make_unique<SocketChannel>(connected, patience);
    error = connect_by(connected, one->ai_addr, one->ai_addrlen, share_of(end, left));
    is_late = is_late || error == kLate;
    if (error == 0) {
      const int yes = 1;
      setsockopt(connected, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      const linger none{1, 0};  // a client that ends resets the connection, so that the service drops what it did for it
      setsockopt(connected, SOL_SOCKET, SO_LINGER, &none, sizeof none);
      if (!url.tls) return channel;
      return add_tls(std::move(channel), connected, url.host, authorities, patience);
    }
  }
  if (is_late) patience.fail();
  fail(url.authority, std::strerror(error), "url");
}

}  // namespace shardmat::tools
