// Requests to the service over its Unix socket, one after another.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "kernels/base/host_vector.h"

namespace shardmat::tools {

struct HttpReply {
  int status = 0;
  std::map<std::string, std::string> fields;  ///< names in lower case
  HostVector<char> body;

  std::string_view text() const { return {body.data(), body.size()}; }
};

class HttpClient {
 public:
  /// Throws Error(resources) if no service listens on the socket.
  explicit HttpClient(const std::string& unix_socket);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Sends a request and returns the reply. Throws Error(rank_lost) if the service ends before.
  HttpReply send(const std::string& method, const std::string& target, std::span<const std::byte> body = {},
                 const std::string& content_type = "application/json");

 private:
  void write(std::string_view bytes);
  void fill();

  int socket_;
  std::string buffer_;  ///< received and not yet used
};

}  // namespace shardmat::tools
