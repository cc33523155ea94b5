// The Open Inference Protocol (KServe v2) as a second door: a matrix is a model, x its input, y its output.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "kernels/base/error.h"
#include "tools/cli/version.h"
#include "tools/serve/handlers/infer_job.h"
#include "tools/serve/handlers/infer_request.h"
#include "tools/serve/handlers/request_space.h"
#include "tools/serve/handlers/route_groups.h"
#include "tools/serve/handlers/text_job.h"
#include "tools/serve/observe/metrics.h"
#include "tools/serve/observe/service_json.h"

namespace shardmat::serve {
namespace {

using json = nlohmann::ordered_json;
using Shown = json (*)(const Matrix& matrix, const Metrics& metrics);

/// All matrices have one version, which clients may name.
constexpr const char* kVersion = "1";

json server_metadata() {
  return {
      {"name", "shardmat"},
      {"version", tools::version_number()},
      {"extensions", {"binary_tensor_data", "model_configuration", "model_repository", "schedule_policy", "statistics"}}};
}

json model_metadata(const Matrix& matrix, const Metrics&) {
  const auto datatype = datatype_name(matrix.wanted.type);
  return {{"name", matrix.wanted.name},
          {"versions", json::array({kVersion})},
          {"platform", "shardmat"},
          {"inputs", {{{"name", "x"}, {"datatype", datatype}, {"shape", {-1, matrix.shape().cols}}}}},
          {"outputs", {{{"name", "y"}, {"datatype", datatype}, {"shape", {-1, matrix.shape().rows}}}}},
          {"batch_invariant", true}};
}

json model_config(const Matrix& matrix, const Metrics&) {
  const std::string type = fmt::format("TYPE_{}", datatype_name(matrix.wanted.type));
  return {{"name", matrix.wanted.name},
          {"platform", "shardmat"},
          {"backend", "shardmat"},
          {"max_batch_size", service::kMostColumns},
          {"input", {{{"name", "x"}, {"data_type", type}, {"dims", json::array({matrix.shape().cols})}}}},
          {"output", {{{"name", "y"}, {"data_type", type}, {"dims", json::array({matrix.shape().rows})}}}}};
}

json duration(std::uint64_t count, double seconds) { return {{"count", count}, {"ns", std::llround(seconds * 1e9)}}; }

json model_statistics(const Matrix& matrix, const Metrics& metrics) {
  const MatrixTotals& totals = metrics.totals(matrix.wanted.name);
  const std::uint64_t count = totals.requests;
  const json one{{"name", matrix.wanted.name},
                 {"version", kVersion},
                 {"last_inference", std::llround(totals.last * 1e3)},
                 {"inference_count", totals.columns},
                 {"execution_count", totals.products},
                 {"inference_stats",
                  {{"success", duration(count, totals.seconds)},
                   {"fail", duration(totals.failed, totals.failed_seconds)},
                   {"queue", duration(count, totals.queue)},
                   {"compute_input", duration(count, totals.copy_in)},
                   {"compute_infer", duration(count, totals.product)},
                   {"compute_output", duration(count, totals.copy_out)}}},
                 {"batch_stats", json::array()}};
  return {{"model_stats", json::array({one})}};
}

json model_ready(const Matrix& matrix, const Metrics&) { return {{"name", matrix.wanted.name}, {"ready", true}}; }

/// The problem of a version that does not exist. The routes with a version have it as their second parameter.
std::optional<Reply> wrong_version(const Call& call) {
  if (call.parameters.size() < 2 || call.parameters[1] == kVersion) return std::nullopt;
  return problem_reply(404, "no_version", fmt::format("{} has no such version; there is {}", call.matrix, kVersion));
}

Accepted show(const Parts& parts, const Call& call, Shown shown) {
  if (auto reply = wrong_version(call)) return std::move(*reply);
  auto usable = usable_matrix(parts.service, call.matrix);
  if (auto* problem = std::get_if<Problem>(&usable)) {
    if (shown == model_ready && problem->status == 409) problem->status = 503;  // probes look at the status alone
    return problem_reply(std::move(*problem));
  }
  return json_reply(200, shown(*std::get<const Matrix*>(usable), parts.metrics));
}

Reply index_of(const Service& service, const Rights& rights, bool ready_only) {
  json models = json::array();
  for (const auto& [name, matrix] : service.matrices()) {
    const bool ready = matrix->state == MatrixState::ready;
    if (!rights.may_use(name) || (ready_only && !ready)) continue;
    const char* state = ready ? "READY" : matrix->state == MatrixState::loading ? "LOADING" : "UNAVAILABLE";
    models.push_back({{"name", name}, {"version", kVersion}, {"state", state}, {"reason", matrix->reason}});
  }
  return json_reply(200, models);
}

Accepted list(const Service& service, const Call& call) {
  return take_text(call,
                   [&service, rights = call.head.rights](std::string_view body, const std::function<void(Reply)>& done) {
                     bool ready = false;
                     try {
                       const json request = body.empty() ? json::object() : parse_json(body, R"({"ready": true})");
                       if (request.contains("ready") && !request["ready"].is_boolean())
                         return done(problem_reply(400, "malformed", "ready must be true or false"));
                       ready = request.value("ready", false);
                     } catch (const Error& error) {
                       return done(problem_reply(400, "malformed", error.what()));
                     }
                     done(index_of(service, *rights, ready));
                   });
}

/// The source and the type are parameters. Without them a matrix that failed is loaded again as it was.
WantedMatrix wanted_of(const Service& service, const std::string& name, std::string_view body) {
  const json request = body.empty() ? json::object() : parse_json(body, R"({"parameters": {"source": "bar.h5"}})");
  const json parameters = request.value("parameters", json::object());
  const Matrix* before = service.find(name);
  if (parameters.empty() && before != nullptr) return before->wanted;
  return parse_load(name, parameters.dump());
}

/// Nothing, as the protocol wants it, unless a restart would forget what was asked for.
json saved_json(const Service& service, const std::string& name) {
  json answer = json::object();
  if (!service.is_saved(name)) add_saved(answer, service, name);
  return answer;
}

Accepted load(Service& service, const Call& call) {
  return take_text(call, [&service, name = call.matrix](std::string_view body, const std::function<void(Reply)>& done) {
    const auto loaded = [&service, name, done](const std::optional<Problem>& problem) {
      done(problem ? problem_reply(*problem) : json_reply(200, saved_json(service, name)));
    };
    try {
      if (const auto problem = service.load(wanted_of(service, name, body), loaded)) done(problem_reply(*problem));
    } catch (const Error& error) {
      done(problem_reply(400, "malformed", fmt::format("parameters: {}", error.what())));
    }
  });
}

Accepted unload(Service& service, const Call& call) {
  return take_text(call, [&service, name = call.matrix](std::string_view, const std::function<void(Reply)>& done) {
    const auto unloaded = [&service, name, done](const std::optional<Problem>& problem) {
      done(problem ? problem_reply(*problem) : json_reply(200, saved_json(service, name)));
    };
    if (const auto problem = service.unload(name, unloaded)) done(problem_reply(*problem));
  });
}

Accepted infer(Service& service, const Call& call) {
  if (auto reply = wrong_version(call)) return std::move(*reply);
  return accept_infer(service, call);
}

}  // namespace

void add_v2_routes(Routes& routes, const Parts& parts) {
  Service& service = parts.service;
  routes.add(
      {"GET", "/v2", Scope::read, "metadata", [](const Call&) -> Accepted { return json_reply(200, server_metadata()); }});
  for (const std::string model : {"/v2/models/{matrix}", "/v2/models/{matrix}/versions/{version}"}) {
    const auto add = [&](const char* path, const char* op, Shown shown) {
      routes.add(
          {"GET", model + path, Scope::read, op, [parts, shown](const Call& call) { return show(parts, call, shown); }});
    };
    add("", "metadata", model_metadata);
    add("/ready", "health", model_ready);
    add("/config", "metadata", model_config);
    add("/stats", "metadata", model_statistics);
    routes.add(
        {"POST", model + "/infer", Scope::multiply, "infer", [&service](const Call& call) { return infer(service, call); }});
  }
  routes.add(
      {"POST", "/v2/repository/index", Scope::read, "list", [&service](const Call& call) { return list(service, call); }});
  routes.add({"POST", "/v2/repository/models/{matrix}/load", Scope::admin, "load",
              [&service](const Call& call) { return load(service, call); }});
  routes.add({"POST", "/v2/repository/models/{matrix}/unload", Scope::admin, "unload",
              [&service](const Call& call) { return unload(service, call); }});
}

}  // namespace shardmat::serve
