#include "tools/serve/observe/service_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>

#include "kernels/base/error.h"
#include "tools/serve/ranks/cores.h"
#include "tools/serve/state/library_files.h"
#include "tools/serve/words/utc.h"
#include "tools/serve/words/value_names.h"

namespace shardmat::serve {

using json = nlohmann::ordered_json;

namespace {

constexpr std::size_t kDeepest = 64, kMostKeys = 1000;

/// Reads JSON and keeps nothing; throws Error(input) for one that has too many levels or keys. The keys of an ordered object
/// are compared with one another, so their number must be bounded before it is made.
class Limits : public nlohmann::json_sax<json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return deeper(); }
  bool start_array(std::size_t) override { return deeper(); }
  bool end_object() override { return --depth_, true; }
  bool end_array() override { return --depth_, true; }
  bool key(string_t&) override {
    if (++keys_ > kMostKeys) throw Error(ErrorKind::input, fmt::format("the body has more than {} keys", kMostKeys));
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  bool deeper() {
    if (++depth_ > kDeepest) throw Error(ErrorKind::input, fmt::format("the body has more than {} levels", kDeepest));
    return true;
  }

  std::size_t depth_ = 0, keys_ = 0;
};

}  // namespace

json to_json(const Matrix& matrix) {
  // One that failed stays until another takes its place; whoever waits for that must not give up.
  const bool is_tried_again =
      matrix.state == MatrixState::failed && matrix.next && matrix.next->state == MatrixState::loading;
  json one{{"name", matrix.wanted.name},
           {"source", matrix.wanted.source},
           {"type", type_name(matrix.wanted.type)},
           {"state", state_name(is_tried_again ? MatrixState::loading : matrix.state)}};
  if (!matrix.reason.empty() && !is_tried_again) one["reason"] = matrix.reason;
  one["pinned"] = matrix.wanted.pinned;
  if (matrix.wanted.of_arrays) one["of_arrays"] = true;
  if (!matrix.is_loaded()) return one;
  one["generation"] = matrix.generation;
  one["updatable"] = matrix.wanted.updatable;
  one["solvable"] = matrix.wanted.solvable;
  if (!matrix.wanted.coordinates.empty()) one["coordinates"] = matrix.wanted.coordinates;
  const service::Loaded& shape = matrix.shape();
  one["rows"] = shape.rows, one["cols"] = shape.cols, one["nnz"] = shape.nnz;
  one["transposable"] = shape.transposable;
  one["exchange"] = shape.exchange;
  one["sort"] = matrix.wanted.sort;
  one["batch_invariant"] = true;
  for (const service::WidthTime& width : shape.widths)
    one["widths"].push_back({{"columns", width.width}, {"seconds", width.seconds}});
  for (std::size_t i = 0; i < matrix.ranks.size(); ++i) {
    const service::Loaded& rank = matrix.ranks[i];
    const std::int64_t solvers = matrix.solvers.bytes(i);
    one["ranks"].push_back({{"kernel", rank.kernel},
                            {"why", rank.why},
                            {"device_bytes", rank.bytes + solvers},
                            {"update_bytes", rank.update_bytes},
                            {"solve_bytes", rank.solve_bytes},
                            {"solver_bytes", solvers}});
  }
  one["solvers"] = solvers_json(matrix);
  one["waiting"] = matrix.queue.size();
  one["jobs"] = matrix.jobs;
  if (matrix.next) one["replacement"] = to_json(*matrix.next);
  return one;
}

json solvers_json(const Matrix& matrix) {
  json all = json::array();
  for (const HeldSolver& solver : matrix.solvers.all()) {
    json one{{"method", solver.method}, {"preconditioner", solver.preconditioner}};
    if (!solver.note.empty()) one["note"] = solver.note;
    one["settings"] = solver.settings, one["columns"] = solver.columns;
    one["device_bytes"] = std::accumulate(solver.bytes.begin(), solver.bytes.end(), std::int64_t{0});
    one["last_used"] = utc(solver.last_used);
    all.push_back(std::move(one));
  }
  return all;
}

void add_saved(json& answer, const Service& service, const std::string& name) {
  const bool saved = service.is_saved(name);
  answer["saved"] = saved;
  if (!saved && !service.why_unsaved().empty())
    answer["warning"] = fmt::format(
        "this is not saved, so that a restart of the service would forget it: {}. The service tries again until it succeeds",
        service.why_unsaved());
}

namespace {

/// What the asking token holds.
json token_json(const Service& service, const Rights& rights) {
  const auto [vectors, requests] = service.token_memory().used(rights.tenant());
  json token{{"name", rights.name()}, {"vector_bytes", vectors}, {"request_bytes", requests}};
  if (rights.memory_bytes > 0) token["memory_bytes"] = rights.memory_bytes;
  return token;
}

json loss_json(const Service::PastLoss& past) {
  json loss{{"time", utc(past.time)}};
  if (past.loss.rank >= 0) loss["rank"] = past.loss.rank;
  if (!past.loss.host.empty()) loss["host"] = past.loss.host;
  if (past.loss.end && past.loss.end->signal != 0) loss["signal"] = past.loss.end->signal;
  else if (past.loss.end) loss["exit_code"] = past.loss.end->exit_code;
  loss["reason"] = past.loss.why;
  return loss;
}

}  // namespace

json ranks_json(const Service& service, const Rights& rights) {
  const auto problem = service.why_not_ready();
  json ranks = json::array();
  for (const service::Hello& hello : service.ranks().hellos())
    ranks.push_back({{"rank", hello.rank},
                     {"host", hello.host},
                     {"device", hello.device},
                     {"threads", hello.threads},
                     {"cores", cpus_of(hello.cpus).size()},
                     {"cpus", hello.cpus},
                     {"memory_bytes", hello.memory_bytes},
                     {"copy_bandwidth", hello.copy_bandwidth}});
  json all{{"state", problem ? problem->code : "ready"}, {"restarts", service.restarts()}};
  if (const auto& past = service.last_loss()) all["last_loss"] = loss_json(*past);
  all["ranks"] = ranks;
  if (const SharedCores& shared = service.cores_in_use(); !shared.cores.empty())
    all["shared_cores"] = {{"cores", shared.cores.size()}, {"ranks", shared.processes.size()}};
  all["arena"] = {{"bytes", service.arena().bytes()}, {"used", service.space().used()}};
  all["token"] = token_json(service, rights);
  all["client_memory"] = {{"count", service.memories().count()}, {"bytes", service.memories().used_bytes()}};
  return all;
}

Reply json_reply(int status, const json& value) {
  Reply reply;
  reply.status = status;
  reply.text = value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  return reply;
}

json parse_json(std::string_view text, std::string_view example) {
  Limits limits;
  const auto fail = [&](const char* what) {
    throw Error(ErrorKind::input, fmt::format("the body is no {}; send for example {}", what, example));
  };
  try {
    if (!json::sax_parse(text, &limits)) fail("JSON");
    json value = json::parse(text);
    if (!value.is_object()) fail("JSON object");
    return value;
  } catch (const json::exception&) {
    fail("JSON");
  }
  return {};
}

WantedMatrix parse_load(const std::string& name, std::string_view body) {
  const json value = parse_json(body, R"({"source": "bar.h5"})");
  const auto fail = [](const std::string& why) { throw Error(ErrorKind::input, why); };
  for (const auto& [key, field] : value.items()) {
    const bool is_flag = key == "updatable" || key == "solvable" || key == "pinned";
    constexpr std::string_view kWords[] = {"source", "type", "kernel", "exchange", "sort", "coordinates"};
    if (!is_flag && std::ranges::find(kWords, key) == std::end(kWords))
      fail(
          fmt::format("there is no field \"{}\"; there are source, type, kernel, exchange, sort, coordinates, updatable, "
                      "solvable and pinned",
                      key));
    if (is_flag && !field.is_boolean()) fail(fmt::format("{} must be true or false", key));
    if (!is_flag && !field.is_string()) fail(fmt::format("{} must be a string", key));
  }
  if (!value.contains("source")) fail("source is missing: the path of the matrix file in the library");
  const auto type = parse_type(value.value("type", std::string("f64")));
  if (!type) fail(fmt::format("there is no type \"{}\"; choose f64 or f32", value["type"].get<std::string>()));
  WantedMatrix wanted{.name = name, .source = value["source"], .type = *type};
  if (LibraryFiles::is_of_service(wanted.source))
    fail("the source lies in a folder of the service; name a file of the library");
  for (const auto& [key, text] : {std::pair("kernel", &wanted.kernel),
                                  {"exchange", &wanted.exchange},
                                  {"sort", &wanted.sort},
                                  {"coordinates", &wanted.coordinates}})
    *text = value.value(key, *text);
  if (LibraryFiles::is_of_service(wanted.coordinates))
    fail("the coordinates lie in a folder of the service; name a file of the library");
  wanted.updatable = value.value("updatable", false), wanted.solvable = value.value("solvable", false);
  wanted.pinned = value.value("pinned", false);
  return wanted;
}

bool parse_pin(std::string_view body) {
  const json value = parse_json(body, R"({"pinned": true})");
  if (value.size() != 1 || !value.contains("pinned") || !value["pinned"].is_boolean())
    throw Error(ErrorKind::input, "there is one field, pinned, which is true or false");
  return value["pinned"];
}

}  // namespace shardmat::serve
