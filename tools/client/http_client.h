// Requests to the service, one after another over one connection.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kernels/base/host_vector.h"
#include "tools/client/client_channel.h"

namespace shardmat::tools {

struct HttpReply {
  int status = 0;
  std::map<std::string, std::string> fields;  ///< names in lower case
  HostVector<char> body;

  std::string_view text() const { return {body.data(), body.size()}; }
};

/// How long a request that the service refuses before it begins is sent again.
struct RetryLimit {
  double seconds = 0;                                                    ///< in all
  Patience::Clock::time_point end = Patience::Clock::time_point::max();  ///< not after
};

class HttpClient {
 public:
  using Connect = std::function<std::unique_ptr<ClientChannel>()>;
  /// Connects, and throws what `connect` throws. `host`: for the Host field. `token`: empty for none.
  HttpClient(Connect connect, std::string host, std::string token, RetryLimit retries = {});
  const RetryLimit& retries() const { return retries_; }

  /// Sends a request and returns the reply; over a new connection if the service has ended the one before, which was idle.
  /// Throws Error(rank_lost) if the service ends before it answers, or is too slow; later requests then fail at once.
  HttpReply send(const std::string& method, const std::string& target, std::span<const std::byte> body = {},
                 const std::string& content_type = "application/json");

  /// Asks for a stream and gives it to `take`, line by line, until it ends. A reply that is no stream is returned. Once it
  /// has begun, the service may be silent for `silence` seconds, whatever the limit of a step.
  HttpReply follow(const std::string& target, double silence, const std::function<void(const std::string&)>& take);

 private:
  void fill();
  HttpReply begin(const std::string& method, const std::string& target, std::span<const std::byte> body,
                  const std::string& content_type);
  void read_body(HttpReply& reply);

  Connect connect_;
  RetryLimit retries_;
  std::unique_ptr<ClientChannel> channel_;
  std::string fields_;    ///< of every request
  std::string buffer_;    ///< received and not yet used
  bool is_whole_ = true;  ///< no request is unanswered
  bool closes_ = false;   ///< the service ends the connection after its last answer
};

}  // namespace shardmat::tools
