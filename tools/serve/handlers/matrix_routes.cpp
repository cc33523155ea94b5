// The paths below /v1/matrices: which matrices there are, loading, unloading and multiplying.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "kernels/base/error.h"
#include "tools/serve/handlers/multiply_job.h"
#include "tools/serve/handlers/route_groups.h"
#include "tools/serve/handlers/text_job.h"
#include "tools/serve/handlers/values_job.h"
#include "tools/serve/observe/service_json.h"
#include "tools/serve/ranks/generation.h"

namespace shardmat::serve {
namespace {

Reply describe(const Service& service, const std::string& name) {
  const Matrix* matrix = service.find(name);
  if (matrix == nullptr) return problem_reply(404, "no_matrix", fmt::format("there is no matrix {}", name));
  nlohmann::ordered_json description = to_json(*matrix);
  if (matrix->kept || !service.is_saved(name)) add_saved(description, service, name);
  return about(json_reply(200, description), matrix);
}

Reply list(const Service& service, const Rights& rights) {
  nlohmann::ordered_json matrices = nlohmann::ordered_json::array();
  for (const auto& [name, matrix] : service.matrices())
    if (rights.may_use(name)) {
      matrices.push_back(to_json(*matrix));
      if (matrix->kept) matrices.back()["saved"] = service.is_saved(name);
    }
  return json_reply(200, {{"matrices", matrices}});
}

Accepted load(Service& service, const Call& call) {
  bool wait = false;
  for (const auto& [key, value] : call.target.query) {
    if (key != "wait" || (value != "0" && value != "1"))
      return problem_reply(400, "malformed", "load takes wait=0 or wait=1");
    wait = value == "1";
  }
  return take_text(call,
                   [&service, wait, name = call.matrix](std::string_view body, const std::function<void(Reply)>& done) {
                     WantedMatrix wanted;
                     try {
                       wanted = parse_load(name, body);
                     } catch (const Error& error) {
                       return done(problem_reply(400, "malformed", error.what()));
                     }
                     const auto loaded = [&service, name, done](const std::optional<Problem>& problem) {
                       done(problem ? problem_reply(*problem) : describe(service, name));
                     };
                     if (const auto problem = service.load(wanted, wait ? Service::Loaded(loaded) : nullptr))
                       return done(problem_reply(*problem));
                     if (wait) return;
                     Reply reply = describe(service, name);
                     reply.status = 202;
                     done(std::move(reply));
                   });
}

Accepted unload(Service& service, const Call& call) {
  return take_text(call, [&service, name = call.matrix](std::string_view, const std::function<void(Reply)>& done) {
    const auto unloaded = [&service, name, done](const std::optional<Problem>& problem) {
      if (problem) return done(problem_reply(*problem));
      nlohmann::ordered_json answer{{"name", name}, {"state", "unloaded"}};
      add_saved(answer, service, name);
      done(json_reply(200, answer));
    };
    if (const auto problem = service.unload(name, unloaded)) done(problem_reply(*problem));
  });
}

Accepted pin(Service& service, const Call& call) {
  return take_text(call, [&service, name = call.matrix](std::string_view body, const std::function<void(Reply)>& done) {
    try {
      const auto pinned = [&service, name, done](const auto&) { done(describe(service, name)); };
      if (const auto problem = service.pin(name, parse_pin(body), pinned)) done(problem_reply(*problem));
    } catch (const Error& error) {
      done(problem_reply(400, "malformed", error.what()));
    }
  });
}

Accepted multiply(Service& service, const Call& call) {
  auto accepted = accept_multiply(service, call.head, call.target);
  if (auto* problem = std::get_if<Problem>(&accepted))
    return about(problem_reply(std::move(*problem)), service.find(call.matrix));
  return std::move(std::get<std::unique_ptr<Job>>(accepted));
}

}  // namespace

void add_matrix_routes(Routes& routes, const Parts& parts) {
  Service& service = parts.service;
  routes.add({"GET", "/v1/matrices", Scope::read, "list",
              [&service](const Call& call) -> Accepted { return list(service, call.rights()); }});
  routes.add({"GET", "/v1/matrices/{matrix}", Scope::read, "describe",
              [&service](const Call& call) -> Accepted { return describe(service, call.matrix); }});
  routes.add({"POST", "/v1/matrices/{matrix}/load", Scope::admin, "load",
              [&service](const Call& call) { return load(service, call); }, true});
  routes.add({"POST", "/v1/matrices/{matrix}/unload", Scope::admin, "unload",
              [&service](const Call& call) { return unload(service, call); }});
  routes.add({"POST", "/v1/matrices/{matrix}/pin", Scope::admin, "pin",
              [&service](const Call& call) { return pin(service, call); }});
  routes.add({"POST", "/v1/matrices/{matrix}/multiply", Scope::multiply, "multiply",
              [&service](const Call& call) { return multiply(service, call); }, true});
  routes.add({"PUT", "/v1/matrices/{matrix}/values", Scope::admin, "values",
              [&service](const Call& call) { return accept_values(service, call); }, true});
}

}  // namespace shardmat::serve
