// Sockets on which the service waits for connections.
//
// Threads: one at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardmat::serve {

/// Who is at the other end of a connection.
struct Peer {
  std::string address = "unix";  ///< in numbers, without the port
  bool is_unix = true;
  bool is_loopback = false;
  std::string own_address = {};  ///< of this side, as it stands in a URL: "127.0.0.1", "[::1]"
  bool has_tls = false;
};

struct TcpAddress {
  std::string host;  ///< in numbers: "127.0.0.1", "::1"
  std::uint16_t port = 0;
};
/// "127.0.0.1:8980", "[::1]:0", "localhost:8980". Throws Error(usage), which names what is expected.
TcpAddress parse_tcp_address(std::string_view text);
/// An address as it stands in a URL: IPv6 in brackets.
std::string url_host(const std::string& host);
/// True for an address that only this host reaches.
bool is_loopback(const TcpAddress& address);
/// The address in numbers as Peer has it: "10.0.0.2", "fd00::1"; nothing for anything else.
std::optional<std::string> parse_address(std::string_view text);

/// Owns a listening socket, and removes the file of a Unix socket at its end. Move-only.
class Listener {
 public:
  /// Listens on a Unix socket that only this user can open, and the members of the group if one is given. Throws
  /// Error(resources) if that is impossible, or if another server listens there; a socket that nobody listens on is
  /// replaced.
  static Listener unix_socket(const std::string& path, std::optional<gid_t> group = std::nullopt);
  /// Port 0 takes a free one. Throws Error(resources) if the address is taken or is not one of this host.
  static Listener tcp(const TcpAddress& address);
  ~Listener();
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;

  int descriptor() const { return descriptor_; }
  /// A path, or "127.0.0.1:8980" with the port that was taken.
  const std::string& name() const { return name_; }
  bool is_unix() const { return !path_.empty(); }
  /// The next connection, whose descriptor the caller owns; -1 with errno if there is none.
  int accept(Peer& peer) const;

 private:
  Listener(int descriptor, std::string name, std::string path);

  int descriptor_;
  std::string name_, path_;
};

}  // namespace shardmat::serve
