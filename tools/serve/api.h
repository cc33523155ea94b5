// What each path of the service does: it reads requests, asks the service, and writes replies.
//
// Threads: the thread of the event loop.
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "tools/serve/http_message.h"
#include "tools/serve/names.h"
#include "tools/serve/service.h"

namespace shardmat::serve {

class Api {
 public:
  using Accepted = std::variant<Reply, std::unique_ptr<Job>>;

  explicit Api(Service& service) : service_(service) {}

  /// The Router of the server. Jobs must not outlive this object.
  Accepted route(const RequestHead& head);

 private:
  Accepted route_matrix(const RequestHead& head, const Target& target);
  Accepted load(const RequestHead& head, const Target& target);
  Accepted unload(const RequestHead& head, const Target& target);
  Accepted multiply(const RequestHead& head, const Target& target);
  Reply list() const;
  Reply describe(const std::string& name) const;
  Reply ranks() const;

  Service& service_;
};

}  // namespace shardmat::serve
