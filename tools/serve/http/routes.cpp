#include "tools/serve/http/routes.h"

#include <fmt/format.h>

#include <set>
#include <utility>

namespace shardmat::serve {
namespace {

const std::string kGet = "GET";

bool is_parameter(const std::string& part) { return !part.empty() && part.front() == '{'; }

/// The parts of `path` that stand for parameters; nothing if the path is another one.
std::optional<std::vector<std::string>> parameters_of(const std::vector<std::string>& pattern,
                                                      const std::vector<std::string>& path) {
  if (pattern.size() != path.size()) return std::nullopt;
  std::vector<std::string> parameters;
  for (std::size_t i = 0; i < path.size(); ++i)
    if (is_parameter(pattern[i])) parameters.push_back(path[i]);
    else if (pattern[i] != path[i]) return std::nullopt;
  return parameters;
}

/// The part of `path` in place of the parameter {matrix}; empty if the pattern has none.
std::string matrix_of(const std::vector<std::string>& pattern, const std::vector<std::string>& path) {
  for (std::size_t i = 0; i < pattern.size(); ++i)
    if (pattern[i] == "{matrix}") return path[i];
  return {};
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
  std::vector<std::string> path = target.path;
  if (path.size() > 1 && path.front() == "v2" && path.back().empty()) path.pop_back();  // "/v2/" is "/v2"
  const std::string& method = head.method == "HEAD" ? kGet : head.method;
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    auto parameters = parameters_of(parts_[i], path);
    if (!parameters) continue;
    const Route& route = routes_[i];
    allowed.insert(route.method);
    if (route.method == kGet) allowed.insert("HEAD");
    if (route.method != method) continue;
    std::string matrix = matrix_of(parts_[i], path);
    if (route.path.find("{matrix}") != std::string::npos && !is_matrix_name(matrix)) return bad_name();
    if (!route.takes_query && !target.query.empty()) return problem_reply(400, "malformed", "this path takes no query");
    return Match{&route, Call{head, target, std::move(*parameters), std::move(matrix)}};
  }
  if (!allowed.empty()) return wrong_method(allowed);
  return problem_reply(
      404, "no_path",
      fmt::format("there is no path {}; there are /v1/matrices, /v1/vectors, /v1/ranks and /v2; /openapi.json describes all",
                  head.target.substr(0, 200)));
}

}  // namespace shardmat::serve
