#include "tools/serve/api.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "kernels/base/error.h"
#include "tools/serve/multiply_job.h"
#include "tools/serve/service_json.h"

namespace shardmat::serve {
namespace {

constexpr std::uint64_t kMostJsonBytes = 1 << 20;

/// A request whose body is short text. `work` gets the body.
class TextJob final : public Job {
 public:
  using Work = std::function<void(std::string_view body, std::function<void(Reply)> done)>;

  TextJob(std::uint64_t bytes, Work work) : body_(bytes), work_(std::move(work)) {}
  std::span<std::byte> body() override { return body_; }
  void start(std::function<void(Reply)> done) override {
    // The service may answer after the client has left, and with it this job.
    const auto here = [weak = std::weak_ptr(alive_), done = std::move(done)](Reply reply) {
      if (!weak.expired()) done(std::move(reply));
    };
    work_({reinterpret_cast<const char*>(body_.data()), body_.size()}, here);
  }

 private:
  std::vector<std::byte> body_;
  Work work_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

Reply wrong_method(const std::string& allowed) {
  Reply reply = problem_reply(405, "method", "this path takes " + allowed);
  reply.fields.emplace_back("Allow", allowed);
  return reply;
}

Reply not_found(const std::string& target) {
  return problem_reply(404, "no_path",
                       fmt::format("there is no path {}; there are /v1/matrices and /v1/ranks", target.substr(0, 200)));
}

}  // namespace

Api::Accepted Api::route(const RequestHead& head) {
  const auto target = parse_target(head.target);
  if (!target) return problem_reply(400, "malformed", "the path, or its query, is malformed");
  const auto is = [&](std::initializer_list<const char*> path) {
    return std::equal(target->path.begin(), target->path.end(), path.begin(), path.end());
  };
  if (target->path.size() >= 3 && target->path[0] == "v1" && target->path[1] == "matrices")
    return route_matrix(head, *target);
  const bool known =
      is({"v2", "health", "live"}) || is({"v2", "health", "ready"}) || is({"v1", "matrices"}) || is({"v1", "ranks"});
  if (!known) return not_found(head.target);
  if (head.method != "GET") return wrong_method("GET");
  if (!target->query.empty()) return problem_reply(400, "malformed", "this path takes no query");
  if (is({"v1", "matrices"})) return list();
  if (is({"v1", "ranks"})) return ranks();
  const auto problem = service_.why_not_ready();
  if (is({"v2", "health", "ready"}) && problem) return problem_reply(*problem);
  return json_reply(200, {{is({"v2", "health", "live"}) ? "live" : "ready", true}});
}

Api::Accepted Api::route_matrix(const RequestHead& head, const Target& target) {
  const std::string& name = target.path[2];
  if (!is_matrix_name(name))
    return problem_reply(
        400, "bad_name",
        "the name of a matrix is a letter or digit, then at most 63 letters, digits, dots, hyphens and underscores");
  if (target.path.size() == 3) return head.method == "GET" ? describe(name) : wrong_method("GET");
  const std::string& action = target.path[3];
  if (target.path.size() > 4 || (action != "load" && action != "unload" && action != "multiply"))
    return not_found(head.target);
  if (head.method != "POST") return wrong_method("POST");
  if (action == "multiply") return multiply(head, target);
  if (head.content_length > kMostJsonBytes)
    return problem_reply(413, "too_long", fmt::format("the body has more than {} bytes", kMostJsonBytes));
  return action == "load" ? load(head, target) : unload(head, target);
}

Reply Api::list() const { return json_reply(200, to_json(service_.matrices())); }

Reply Api::describe(const std::string& name) const {
  const Matrix* matrix = service_.find(name);
  if (matrix == nullptr) return problem_reply(404, "no_matrix", fmt::format("there is no matrix {}", name));
  return json_reply(200, to_json(*matrix));
}

Reply Api::ranks() const { return json_reply(200, ranks_json(service_)); }

Api::Accepted Api::load(const RequestHead& head, const Target& target) {
  bool wait = false;
  for (const auto& [key, value] : target.query) {
    if (key != "wait" || (value != "0" && value != "1"))
      return problem_reply(400, "malformed", "load takes wait=0 or wait=1");
    wait = value == "1";
  }
  return std::make_unique<TextJob>(head.content_length, [this, wait, name = target.path[2]](
                                                            std::string_view body, const std::function<void(Reply)>& done) {
    WantedMatrix wanted;
    try {
      wanted = parse_load(name, body);
    } catch (const Error& error) {
      return done(problem_reply(400, "malformed", error.what()));
    }
    const auto loaded = [this, name, done](const std::optional<Problem>& problem) {
      done(problem ? problem_reply(*problem) : describe(name));
    };
    if (const auto problem = service_.load(wanted, wait ? Service::Loaded(loaded) : nullptr))
      return done(problem_reply(*problem));
    if (wait) return;
    Reply reply = describe(name);
    reply.status = 202;
    done(std::move(reply));
  });
}

Api::Accepted Api::unload(const RequestHead& head, const Target& target) {
  if (!target.query.empty()) return problem_reply(400, "malformed", "unload takes no query");
  return std::make_unique<TextJob>(
      head.content_length, [this, name = target.path[2]](std::string_view, const std::function<void(Reply)>& done) {
        const auto unloaded = [name, done](const std::optional<Problem>& problem) {
          done(problem ? problem_reply(*problem) : json_reply(200, {{"name", name}, {"state", "unloaded"}}));
        };
        if (const auto problem = service_.unload(name, unloaded)) done(problem_reply(*problem));
      });
}

Api::Accepted Api::multiply(const RequestHead& head, const Target& target) {
  auto accepted = accept_multiply(service_, head, target);
  if (auto* problem = std::get_if<Problem>(&accepted)) return problem_reply(std::move(*problem));
  return std::move(std::get<std::unique_ptr<Job>>(accepted));
}

}  // namespace shardmat::serve
