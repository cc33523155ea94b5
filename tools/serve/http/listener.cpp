#include "tools/serve/http/listener.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "kernels/base/error.h"
#include "tools/serve/http/names.h"

namespace shardmat::serve {
namespace {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

/// Nothing of size 0 if the host is no address in numbers.
SocketAddress socket_address(const TcpAddress& address) {
  SocketAddress result;
  if (address.host.find(':') != std::string::npos) {
    auto* six = reinterpret_cast<sockaddr_in6*>(&result.storage);
    six->sin6_family = AF_INET6, six->sin6_port = htons(address.port);
    if (inet_pton(AF_INET6, address.host.c_str(), &six->sin6_addr) == 1) result.size = sizeof *six;
  } else {
    auto* four = reinterpret_cast<sockaddr_in*>(&result.storage);
    four->sin_family = AF_INET, four->sin_port = htons(address.port);
    if (inet_pton(AF_INET, address.host.c_str(), &four->sin_addr) == 1) result.size = sizeof *four;
  }
  return result;
}

bool is_loopback(const SocketAddress& address) {
  if (address.storage.ss_family == AF_INET)
    return (ntohl(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr.s_addr) >> 24) == 127;
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr);
}

TcpAddress tcp_address(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.storage.ss_family == AF_INET) {
    const auto* four = reinterpret_cast<const sockaddr_in*>(&address.storage);
    inet_ntop(AF_INET, &four->sin_addr, text, sizeof text);
    return {text, ntohs(four->sin_port)};
  }
  const auto* six = reinterpret_cast<const sockaddr_in6*>(&address.storage);
  inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof text);
  return {text, ntohs(six->sin6_port)};
}

std::string name_of(const TcpAddress& address) { return fmt::format("{}:{}", url_host(address.host), address.port); }

[[noreturn]] void fail(const std::string& name, const std::string& why, const char* option) {
  throw Error(ErrorKind::resources, fmt::format("{}: {}", name, why), option);
}

/// True if a server listens on the socket; removes one that nobody listens on.
bool is_taken(const std::string& path, const sockaddr_un& address) {
  const int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool taken = connect(other, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(other);
  if (taken) return true;
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return false;
  if (!S_ISSOCK(status.st_mode)) fail(path, "there is a file of another kind; choose another path", "unix");
  unlink(path.c_str());
  return false;
}

}  // namespace

std::string url_host(const std::string& host) {
  return host.find(':') == std::string::npos ? host : fmt::format("[{}]", host);
}

TcpAddress parse_tcp_address(std::string_view text) {
  const auto fail = [&] {
    throw Error(ErrorKind::usage,
                fmt::format("{} is no address to listen on; give one as 127.0.0.1:8980, [::1]:8980 or localhost:8980", text),
                "listen");
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) fail();
  TcpAddress address{std::string(text.substr(0, colon)), 0};
  const auto port = parse_whole(text.substr(colon + 1));
  if (!port || *port < 0 || *port > 65535) fail();
  address.port = static_cast<std::uint16_t>(*port);
  std::string& host = address.host;
  const bool in_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (in_brackets) host = host.substr(1, host.size() - 2);
  if (in_brackets != (host.find(':') != std::string::npos)) fail();
  if (host == "localhost") host = "127.0.0.1";
  if (socket_address(address).size == 0) fail();
  return address;
}

std::optional<std::string> parse_address(std::string_view text) {
  const SocketAddress address = socket_address({std::string(text), 0});
  if (address.size == 0) return std::nullopt;
  return tcp_address(address).host;
}

bool is_loopback(const TcpAddress& address) { return is_loopback(socket_address(address)); }

Listener::Listener(int descriptor, std::string name, std::string path)
    : descriptor_(descriptor), name_(std::move(name)), path_(std::move(path)) {}

Listener::Listener(Listener&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), name_(std::move(other.name_)), path_(std::move(other.path_)) {
  other.path_.clear();
}

Listener::~Listener() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!path_.empty()) unlink(path_.c_str());
}

Listener Listener::unix_socket(const std::string& path, std::optional<gid_t> group) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    fail(path, "this is too long for the path of a socket; choose one of at most 107 bytes", "unix");
  std::memcpy(address.sun_path, path.c_str(), path.size());
  if (is_taken(path, address)) fail(path, "another server listens there; choose another path", "unix");
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const mode_t mask = umask(0177);  // the socket never exists with more rights
  const bool bound = bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const int error = errno;
  umask(mask);
  Listener listener(descriptor, path, bound ? path : "");
  if (!bound) fail(path, std::strerror(error), "unix");
  if (group && (chown(path.c_str(), static_cast<uid_t>(-1), *group) != 0 || chmod(path.c_str(), 0660) != 0))
    fail(path, fmt::format("the group cannot be given the socket: {}; this user must be its member", std::strerror(errno)),
         "unix-group");
  if (listen(descriptor, SOMAXCONN) != 0) fail(path, std::strerror(errno), "unix");
  return listener;
}

Listener Listener::tcp(const TcpAddress& address) {
  SocketAddress where = socket_address(address);
  const int descriptor = socket(where.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  Listener listener(descriptor, name_of(address), "");
  const int yes = 1;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (where.storage.ss_family == AF_INET6) setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
  if (descriptor < 0 || bind(descriptor, where.get(), where.size) != 0 || listen(descriptor, SOMAXCONN) != 0)
    fail(listener.name_, fmt::format("{}; choose another address or port", std::strerror(errno)), "listen");
  where.size = sizeof where.storage;
  if (getsockname(descriptor, where.get(), &where.size) == 0) listener.name_ = name_of(tcp_address(where));
  return listener;
}

int Listener::accept(Peer& peer) const {
  SocketAddress from;
  from.size = sizeof from.storage;
  const int connection = accept4(descriptor_, from.get(), &from.size, SOCK_CLOEXEC | SOCK_NONBLOCK);
  peer = {};
  if (connection >= 0 && is_unix()) {
    // Half of a reply of 0.8 MB goes into the socket's buffer in place of a quarter. More than this the kernel does not
    // give.
    const int bytes = 1 << 20;
    setsockopt(connection, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  }
  if (connection < 0 || is_unix()) return connection;
  const int yes = 1;
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  setsockopt(connection, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  peer = {tcp_address(from).host, false, is_loopback(from)};
  SocketAddress own;
  own.size = sizeof own.storage;
  if (getsockname(connection, own.get(), &own.size) == 0) peer.own_address = url_host(tcp_address(own).host);
  return connection;
}

}  // namespace shardmat::serve
