#include "tools/serve/http/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>

namespace shardmat::serve {
namespace {

const std::string kGet = "GET";

bool is_parameter(const std::string& part) { return !part.empty() && part.front() == '{'; }

using Segments = std::span<const std::string>;

bool fits(Segments pattern, Segments path) {
  return std::equal(pattern.begin(), pattern.end(), path.begin(), path.end(),
                    [](const std::string& part, const std::string& own) { return is_parameter(part) || part == own; });
}

/// The parts of `path` that stand for parameters. REQUIRES: it fits.
std::vector<std::string> parameters_of(Segments pattern, Segments path) {
  std::vector<std::string> parameters;
  for (std::size_t i = 0; i < path.size(); ++i)
    if (is_parameter(pattern[i])) parameters.push_back(path[i]);
  return parameters;
}

/// The part of `path` in place of the parameter {matrix}; null if the pattern has none. REQUIRES: it fits.
const std::string* matrix_of(Segments pattern, Segments path) {
  const auto found = std::find(pattern.begin(), pattern.end(), "{matrix}");
  return found == pattern.end() ? nullptr : &path[static_cast<std::size_t>(found - pattern.begin())];
}

Reply wrong_method(const std::set<std::string>& allowed) {
  std::string list;
  for (const std::string& method : allowed) list += (list.empty() ? "" : ", ") + method;
  Reply reply = problem_reply(405, "method", "this path takes " + list);
  reply.fields.emplace_back("Allow", list);
  return reply;
}

Reply bad_name() {
  return problem_reply(
      400, "bad_name",
      "the name of a matrix is a letter or digit, then at most 63 letters, digits, dots, hyphens and underscores");
}

}  // namespace

void Routes::add(Route route) {
  parts_.push_back(parse_target(route.path).value().path);
  routes_.push_back(std::move(route));
}

std::variant<Routes::Match, Reply> Routes::find(const RequestHead& head, const Target& target) const {
  std::set<std::string> allowed;
  Segments path = target.path;
  if (path.size() > 1 && path.front() == "v2" && path.back().empty()) path = path.first(path.size() - 1);  // "/v2/" is "/v2"
  const std::string& method = head.method == "HEAD" ? kGet : head.method;
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    if (!fits(parts_[i], path)) continue;
    const Route& route = routes_[i];
    if (route.method != method) {
      allowed.insert(route.method);
      if (route.method == kGet) allowed.insert("HEAD");
      continue;
    }
    const std::string* matrix = matrix_of(parts_[i], path);
    if (matrix != nullptr && !is_matrix_name(*matrix)) return bad_name();
    if (!route.takes_query && !target.query.empty()) return problem_reply(400, "malformed", "this path takes no query");
    return Match{&route, Call{head, target, parameters_of(parts_[i], path), matrix != nullptr ? *matrix : std::string()}};
  }
  if (!allowed.empty()) return wrong_method(allowed);
  return problem_reply(
      404, "no_path",
      fmt::format("there is no path {}; there are /v1/matrices, /v1/vectors, /v1/ranks and /v2; /openapi.json describes all",
                  head.target.substr(0, 200)));
}

}  // namespace shardmat::serve
