// The paths of the service as a table. A group of paths is a file with a function that adds its routes; route_groups.h lists
// the groups.
//
// Threads: the thread of the event loop.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tools/serve/http/http_message.h"
#include "tools/serve/http/names.h"

namespace shardmat::serve {

/// A request whose path is in the table.
struct Call {
  const RequestHead& head;
  const Target& target;
  std::vector<std::string> parameters;  ///< parts of the path that stand for {…} of the route, in this order
  std::string matrix;                   ///< the parameter {matrix}, if the route has one: a good name

  const Rights& rights() const { return *head.rights; }
};

/// A reply that needs no body, or a job that takes it.
using Accepted = std::variant<Reply, std::unique_ptr<Job>>;

struct Route {
  std::string method;
  std::string path;  ///< "/v1/matrices/{matrix}/load"; a parameter stands for one part
  Scope scope = Scope::read;
  std::string op;  ///< what the route does, in one word
  std::function<Accepted(const Call&)> handle;
  bool takes_query = false;
  bool asks_who = false;  ///< of scope none: `handle` wants to know the client if it says who it is
};

class Routes {
 public:
  struct Match {
    const Route* route;
    Call call;
  };

  void add(Route route);
  const std::vector<Route>& all() const { return routes_; }
  /// The route of a request; or 404, 405, or 400 for a bad name of a matrix or a query that nobody reads. HEAD takes the
  /// route of GET; the connection leaves the body out. The match must not outlive its arguments.
  std::variant<Match, Reply> find(const RequestHead& head, const Target& target) const;

 private:
  std::vector<Route> routes_;
  std::vector<std::vector<std::string>> parts_;  ///< of each route's path
};

}  // namespace shardmat::serve
