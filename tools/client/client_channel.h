// A connection to a server: bytes out and in, over a Unix socket or TCP, with TLS or without.
//
// Threads: one at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace shardmat::tools {

/// How long a client waits for a server: for each step, as connecting or the next bytes, and until a point in time for all
/// steps together.
class Patience {
 public:
  using Clock = std::chrono::steady_clock;

  /// `step_seconds`: 0: no limit. `setting`: what the error names.
  explicit Patience(double step_seconds, Clock::time_point end = Clock::time_point::max(), const char* setting = "timeout")
      : step_seconds_(step_seconds), end_(end), setting_(setting) {}

  /// From now on a step may take that long, if it has a limit at all.
  void wait_at_least(double seconds);
  /// When a step that begins now must be over.
  Clock::time_point end_of_step() const;
  /// Waits until the socket is ready for `events` of poll(). Throws Error(rank_lost) at `end`.
  void wait(int socket, short events, Clock::time_point end) const;
  void wait(int socket, short events) const { wait(socket, events, end_of_step()); }
  [[noreturn]] void fail(const std::string& what = "the service has not answered in time: it is stopped, or busy") const;

 private:
  double step_seconds_;
  Clock::time_point end_;
  const char* setting_;
};

class ClientChannel {
 public:
  virtual ~ClientChannel() = default;
  /// False if the server takes no more. It may have answered before it closed.
  virtual bool write(std::string_view bytes) = 0;
  /// Waits for bytes and returns how many came; 0: the connection has ended.
  virtual std::size_t read(char* to, std::size_t most) = 0;
  /// Whether the server has ended the connection, and nothing of it is left to read. Does not wait.
  virtual bool has_ended() = 0;
  /// Patience::wait_at_least() of the steps to come.
  virtual void wait_at_least(double seconds) = 0;
};

struct ServerUrl {
  bool tls = false;
  std::string host;  ///< without brackets
  std::string port;
  std::string authority;  ///< host and port as they stand in the URL
};
/// "http://127.0.0.1:8980", "https://lab.example.org". Throws Error(usage) for anything else.
ServerUrl parse_server_url(const std::string& text);

/// Each throws Error(resources) if nobody listens there, and Error(rank_lost) if the server is slower than `patience`, as do
/// write() and read(). To look up a name is a step; its addresses share the time of the next. `authorities`: PEM file with
/// the certificates that are trusted; empty: those of this system.
std::unique_ptr<ClientChannel> connect_unix(const std::string& path, const Patience& patience);
std::unique_ptr<ClientChannel> connect_url(const ServerUrl& url, const std::string& authorities, const Patience& patience);

/// TLS over a connected socket that does not block, which the channel then owns. Throws Error(resources) if the server
/// cannot prove that it is `host`, or if this build has no TLS.
std::unique_ptr<ClientChannel> add_tls(std::unique_ptr<ClientChannel> channel, int socket, const std::string& host,
                                       const std::string& authorities, const Patience& patience);

}  // namespace shardmat::tools
