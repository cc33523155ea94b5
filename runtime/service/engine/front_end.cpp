#include "runtime/service/engine/front_end.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "comm/mpi_session.h"
#include "kernels/base/error.h"
#include "runtime/service/wire/frames.h"

namespace shardmat::service {
namespace {

/// For one address to answer, and to greet.
constexpr int kReachMilliseconds = 2000;

/// A socket, or -1 and why there is none.
struct Attempt {
  int socket = -1;
  std::string why;
};

Attempt try_path(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return {-1, "the path is too long for a socket"};
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made >= 0 && connect(made, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return {made, ""};
  const std::string why = std::strerror(errno);
  if (made >= 0) close(made);
  return {-1, why};
}

bool is_ready(int socket, short events) {
  pollfd watched{socket, events, 0};
  return poll(&watched, 1, kReachMilliseconds) == 1 && (watched.revents & events) != 0;
}

/// Connects, and blocks from then on.
bool connects(int socket, const sockaddr* address, socklen_t size) {
  const int flags = fcntl(socket, F_GETFL);
  fcntl(socket, F_SETFL, flags | O_NONBLOCK);
  int error = connect(socket, address, size) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    socklen_t length = sizeof error;
    if (!is_ready(socket, POLLOUT)) error = ETIMEDOUT;
    else getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length);
  }
  fcntl(socket, F_SETFL, flags);
  errno = error;
  return error == 0;
}

/// Whether it is our front end that answers there, and not a program with the same address or port.
bool is_greeted(int socket, const std::string& greeting) {
  std::string heard(greeting.size(), '\0');
  for (std::size_t got = 0; got < heard.size();) {
    if (!is_ready(socket, POLLIN)) return false;
    const ssize_t more = recv(socket, heard.data() + got, heard.size() - got, MSG_DONTWAIT);
    if (more <= 0) return false;
    got += static_cast<std::size_t>(more);
  }
  return heard == greeting;
}

int try_address(const std::string& address, const Invite& invite) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), std::to_string(invite.port).c_str(), &hints, &found) != 0) return -1;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, &freeaddrinfo);
  const int made = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made < 0) return -1;
  const int on = 1;
  setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(made, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  if (connects(made, found->ai_addr, found->ai_addrlen) && is_greeted(made, invite.greeting)) return made;
  close(made);
  return -1;
}

int reach_by_network(const Invite& invite) {
  for (const std::string& address : invite.addresses)
    if (const int socket = try_address(address, invite); socket >= 0) return socket;
  throw Error(ErrorKind::resources,
              fmt::format("the service listens for ranks of other hosts at port {} of {}, and none of these can be reached "
                          "from here; let the ranks' hosts connect to each other",
                          invite.port, fmt::join(invite.addresses, ", ")),
              "control");
}

/// The bytes of the Invite, which the front end sends before all other commands.
std::string receive_invite(int socket) {
  FrameReader reader;
  while (true) {
    if (const auto message = reader.next()) return {reinterpret_cast<const char*>(message->data()), message->size()};
    if (!reader.receive(socket)) leave_front_end();
  }
}

Invite decode_invite(const std::string& bytes) {
  const Command command = decode_command(std::as_bytes(std::span(bytes)));
  if (const auto* invite = std::get_if<Invite>(&command.what)) return *invite;
  throw Error(ErrorKind::internal, "the service did not say where ranks of other hosts reach it");
}

}  // namespace

void leave_front_end() { MpiSession::leave(static_cast<int>(ErrorKind::rank_lost)); }

FrontEnd reach_front_end(const std::string& path, Communicator& ranks, Hello hello) {
  const std::vector<std::string> hosts = ranks.all_gather(ranks.host());
  const auto me = static_cast<std::size_t>(ranks.rank());
  const bool is_first_of_host = std::find(hosts.begin(), hosts.end(), hosts[me]) == hosts.begin() + ranks.rank();
  Attempt mine = is_first_of_host ? try_path(path) : Attempt();
  const std::vector<char> reached = ranks.all_gather(static_cast<char>(mine.socket >= 0));
  const auto first = static_cast<std::size_t>(std::find(reached.begin(), reached.end(), 1) - reached.begin());
  FrontEnd found;
  found.home = first < hosts.size() ? hosts[first] : hosts.front();
  const bool at_home = hosts[me] == found.home;
  if (!at_home && mine.socket >= 0) close(std::exchange(mine.socket, -1));
  ranks.run_agreed([&] {
    if (at_home && mine.socket < 0 && first < hosts.size()) mine = try_path(path);
    if (at_home && mine.socket < 0)
      throw Error(ErrorKind::resources,
                  fmt::format("no service listens on {} ({}); it starts its workers itself", path, mine.why), "control");
  });
  found.socket = mine.socket;
  const bool some_elsewhere = std::any_of(hosts.begin(), hosts.end(), [&](const auto& host) { return host != found.home; });
  std::string invite_bytes;
  if (at_home) {
    hello.asks_for_invite = some_elsewhere && me == first;
    if (!send_frame(found.socket, encode(Answer{0, hello}))) leave_front_end();
    const int arena = receive_descriptor(found.socket);
    if (arena < 0) leave_front_end();
    found.arena.emplace(Arena::map(arena));
    found.arena_bytes = found.arena->bytes();
    if (hello.asks_for_invite) invite_bytes = receive_invite(found.socket);
  }
  if (!some_elsewhere) return found;
  invite_bytes = ranks.broadcast(std::move(invite_bytes), static_cast<int>(first));
  ranks.run_agreed([&] {
    const Invite invite = decode_invite(invite_bytes);
    if (at_home) return;
    found.socket = reach_by_network(invite);
    found.arena_bytes = invite.arena_bytes;
    hello.elsewhere = true, hello.secret = invite.secret;
    if (!send_frame(found.socket, encode(Answer{0, hello}))) leave_front_end();
  });
  return found;
}

}  // namespace shardmat::service
