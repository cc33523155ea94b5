// PUT /v1/matrices/NAME: a matrix of arrays that are the body, in the layout of a .csr file. They become a file in the
// library's own folder, from which the ranks load them now and after each restart; it goes with the matrix.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "kernels/base/error.h"
#include "tools/serve/handlers/route_groups.h"
#include "tools/serve/handlers/upload_job.h"
#include "tools/serve/http/names.h"
#include "tools/serve/observe/service_json.h"

namespace shardmat::serve {
namespace {

/// The query as the fields of a load.
WantedMatrix wanted_of(const std::string& name, const std::string& source, const Target& target) {
  nlohmann::ordered_json fields{{"source", name}};
  for (const auto& [key, value] : target.query) {
    if (key == "source")
      throw Error(ErrorKind::input, "the arrays are the body; to load a file of the library: POST …/load");
    fields[key] = value;
    if (key != "updatable" && key != "solvable" && key != "pinned") continue;
    bool flag = false;
    if (const std::string wrong = read_flag(key, value, flag); !wrong.empty()) throw Error(ErrorKind::input, wrong);
    fields[key] = flag;
  }
  WantedMatrix wanted = parse_load(name, fields.dump());
  wanted.source = source, wanted.of_arrays = true;
  return wanted;
}

void remove_file(Uploads& uploads, const std::string& source) {
  uploads.background.run([&library = uploads.library, source] { library.remove(source); }, [] {});
}

Accepted put(Service& service, const std::shared_ptr<Uploads>& uploads, const Call& call) {
  if (auto problem = service.why_no_new_work()) return problem_reply(std::move(*problem));
  if (!call.rights().may(Scope::library))
    return problem_reply(403, "missing_scope",
                         fmt::format("the token {} has no scope library, which arrays need, too", call.rights().name()));
  WantedMatrix wanted;
  try {
    const std::string source = uploads->library.own(fmt::format("{}.{}.csr", call.matrix, service.numbers().next()));
    wanted = wanted_of(call.matrix, source, call.target);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::resources) return problem_reply(507, "no_disk", error.what());
    return problem_reply(400, "malformed", error.what());
  }
  return take_file(uploads, call, wanted.source, call.matrix, std::nullopt,
                   [&service, uploads, wanted](const Uploaded&, const std::function<void(Reply)>& done) {
                     const auto loaded = [&service, wanted, done](const std::optional<Problem>& problem) {
                       if (problem) return done(problem_reply(*problem));
                       const Matrix* matrix = service.find(wanted.name);
                       if (matrix == nullptr)
                         return done(problem_reply(404, "no_matrix", fmt::format("{} was unloaded", wanted.name)));
                       nlohmann::ordered_json answer = to_json(*matrix);
                       add_saved(answer, service, wanted.name);
                       done(json_reply(201, answer));
                     };
                     if (const auto problem = service.load(wanted, loaded)) {
                       remove_file(*uploads, wanted.source);
                       done(problem_reply(*problem));
                     }
                   });
}

}  // namespace

void add_array_routes(Routes& routes, const Parts& parts, const std::shared_ptr<Uploads>& uploads) {
  Service& service = parts.service;
  service.on_unused_arrays = [uploads](const std::string& source) { remove_file(*uploads, source); };
  routes.add({"PUT", "/v1/matrices/{matrix}", Scope::admin, "load_arrays",
              [&service, uploads](const Call& call) { return put(service, uploads, call); }, true});
}

}  // namespace shardmat::serve
