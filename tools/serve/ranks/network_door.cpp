#include "tools/serve/ranks/network_door.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "kernels/base/error.h"

namespace shardmat::serve {
namespace {

/// Of all connections together, also of programs that are no ranks.
constexpr int kMostConnections = 4096;

[[noreturn]] void fail() {
  throw Error(ErrorKind::resources, fmt::format("cannot listen for ranks of other hosts: {}", std::strerror(errno)));
}

std::string random_text() {
  std::array<unsigned char, 32> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) fail();
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

/// Listens at a port that the system chooses, and returns -1 if there is no such family.
int listen_at_any(int family) {
  const int made = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) return -1;
  sockaddr_storage any{};
  any.ss_family = static_cast<sa_family_t>(family);  // in6addr_any and INADDR_ANY are zeros
  const int off = 0;
  if (family == AF_INET6) setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  const auto size = static_cast<socklen_t>(family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  if (bind(made, reinterpret_cast<const sockaddr*>(&any), size) == 0 && listen(made, SOMAXCONN) == 0) return made;
  close(made);
  return -1;
}

/// Numeric; those of the loop last.
std::vector<std::string> own_addresses() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) fail();
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(all, &freeifaddrs);
  std::vector<std::string> outside, loop;
  for (const ifaddrs* at = all; at != nullptr; at = at->ifa_next) {
    const int family = at->ifa_addr == nullptr ? AF_UNSPEC : at->ifa_addr->sa_family;
    if ((family != AF_INET && family != AF_INET6) || (at->ifa_flags & IFF_UP) == 0) continue;
    std::array<char, NI_MAXHOST> text{};
    const auto size = static_cast<socklen_t>(family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
    if (getnameinfo(at->ifa_addr, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) continue;
    const std::string address = text.data();
    if (address.find('%') != std::string::npos) continue;  // means nothing on another host
    ((at->ifa_flags & IFF_LOOPBACK) != 0 ? loop : outside).push_back(address);
  }
  outside.insert(outside.end(), loop.begin(), loop.end());
  return outside;
}

}  // namespace

NetworkDoor::NetworkDoor(EventLoop& loop, std::function<void(int)> came)
    : loop_(loop), came_(std::move(came)), greeting_(random_text()), secret_(random_text()) {
  listener_ = listen_at_any(AF_INET6);
  if (listener_ < 0) listener_ = listen_at_any(AF_INET);
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (listener_ < 0 || getsockname(listener_, reinterpret_cast<sockaddr*>(&bound), &size) != 0) fail();
  port_ = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                            : reinterpret_cast<const sockaddr_in&>(bound).sin_port);
  watch_ = std::make_unique<ReadWatch>(loop_, listener_, [this] { accept(); });
}

NetworkDoor::~NetworkDoor() {
  watch_.reset();
  if (listener_ >= 0) close(listener_);
}

service::Invite NetworkDoor::invite(std::uint64_t arena_bytes) const {
  return {own_addresses(), port_, greeting_, secret_, arena_bytes};
}

bool NetworkDoor::knows(const std::string& secret) const {
  unsigned char differs = secret.size() != secret_.size();
  for (std::size_t i = 0; i < std::min(secret.size(), secret_.size()); ++i)  // in the same time for each secret
    differs |= static_cast<unsigned char>(secret[i] ^ secret_[i]);
  return differs == 0;
}

void NetworkDoor::accept() {
  const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socket < 0) return;
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  const bool greeted = ++connections_ <= kMostConnections &&
                       send(socket, greeting_.data(), greeting_.size(), MSG_NOSIGNAL) == std::ssize(greeting_);
  if (greeted) came_(socket);
  else close(socket);
}

}  // namespace shardmat::serve
