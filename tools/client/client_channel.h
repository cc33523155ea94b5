// A connection to a server: bytes out and in, over a Unix socket or TCP, with TLS or without.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace shardmat::tools {

class ClientChannel {
 public:
  virtual ~ClientChannel() = default;
  /// False if the server takes no more. It may have answered before it closed.
  virtual bool write(std::string_view bytes) = 0;
  /// Waits for bytes and returns how many came; 0: the connection has ended.
  virtual std::size_t read(char* to, std::size_t most) = 0;
};
/// What write() and read() throw after the deadline: Error(rank_lost).
[[noreturn]] void fail_late();

struct ServerUrl {
  bool tls = false;
  std::string host;  ///< without brackets
  std::string port;
  std::string authority;  ///< host and port as they stand in the URL
};
/// "http://127.0.0.1:8980", "https://lab.example.org". Throws Error(usage) for anything else.
ServerUrl parse_server_url(const std::string& text);

/// Each throws Error(resources) if nobody listens there. `seconds`: the longest wait of connecting, write() and read(); 0:
/// no limit. `authorities`: PEM file with the certificates that are trusted; empty: those of this system.
std::unique_ptr<ClientChannel> connect_unix(const std::string& path, double seconds);
std::unique_ptr<ClientChannel> connect_url(const ServerUrl& url, const std::string& authorities, double seconds);

/// TLS over a connected socket, which the channel then owns. Throws Error(resources) if the server cannot prove that it is
/// `host`, or if this build has no TLS.
std::unique_ptr<ClientChannel> add_tls(std::unique_ptr<ClientChannel> channel, int socket, const std::string& host,
                                       const std::string& authorities);

}  // namespace shardmat::tools
