// A connection to the service that keeps its buffers: a request of a size that was seen before allocates nothing.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "kernels/base/host_vector.h"

namespace shardmat::tools::service_bench {

/// Seconds of a clock that never goes back.
double now();

/// A request that can be sent many times.
struct Request {
  std::string head;  ///< with the empty line
  std::span<const std::byte> body;
  std::span<const std::byte> expected;  ///< body of the reply with status 200; empty: not compared
  /// Or what tells whether that body is right; empty: nothing does.
  std::function<bool(std::span<const std::byte> body)> check = {};
};

/// A request with JSON, or without a body.
Request make_request(std::string_view method, std::string_view target, std::span<const std::byte> body = {});
/// A request with numbers.
Request numbers_request(std::string_view method, std::string_view target, std::span<const std::byte> body);
/// y = A·x for the columns of `body`.
Request multiply_request(std::string_view matrix, std::span<const std::byte> body, std::int64_t columns = 1);

/// y = A·x of vectors that stay in the service.
Request resident_request(std::string_view matrix, std::string_view x, std::string_view y);

/// A complete reply; its text lies in the reader and is valid until the next request.
struct Reply {
  int status = 0;
  std::string_view head;
  std::span<const std::byte> body;
  bool closes = false;  ///< the server ends the connection after it

  std::string_view text() const { return {reinterpret_cast<const char*>(body.data()), body.size()}; }
  /// Value of a header field; empty if it is not there.
  std::string_view field(std::string_view name) const;
  /// Seconds of a part of Server-Timing: queue, copy-in, product, copy-out.
  double seconds_of(std::string_view part) const;
  /// Columns of the product, or of the solve, that this request was part of.
  std::int64_t batch_columns() const;
};

/// True for status 200 with the expected body, or one that passes the check, and for every other status.
bool is_right(const Request& request, const Reply& reply);

class Connection {
 public:
  /// Throws Error(resources) if nobody listens.
  explicit Connection(std::string socket);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Sends the request and waits for the reply. Connects again if the last reply closed the connection. Throws
  /// Error(rank_lost) if the server ends the connection without a reply.
  Reply ask(const Request& request);

  // The same in steps that do not block.
  enum class State { idle, busy, complete, ended };
  int descriptor() const { return socket_; }
  void begin(const Request& request);
  /// True while bytes of the request are left.
  bool sending() const { return sent_ < total_; }
  void send_some();
  /// Reads what has come.
  State receive_some();
  /// REQUIRES: receive_some() said complete.
  Reply reply() const;
  void reconnect();

 private:
  enum class Wait { yes, no };
  void send_some(Wait wait);
  State receive(Wait wait);

  std::string path_;
  int socket_ = -1;
  const Request* request_ = nullptr;
  std::size_t sent_ = 0, total_ = 0;
  HostVector<char> buffer_;
  std::size_t have_ = 0, head_ = 0, wanted_ = 0;  ///< bytes received, of the head, of the whole reply (0: not known)
};

}  // namespace shardmat::tools::service_bench
