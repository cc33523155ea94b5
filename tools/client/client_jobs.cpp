#include "tools/client/client_jobs.h"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <string>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "kernels/base/types.h"
#include "partition/readers/replaceable.h"
#include "partition/vectors/vector_file.h"
#include "tools/cli/checks.h"
#include "tools/cli/value_checks.h"
#include "tools/client/client_service.h"

namespace shardmat::tools {
namespace {

using json = nlohmann::ordered_json;

/// Longer than any solve: the client waits as long as the service does.
constexpr double kWaitSeconds = 1e9;

struct Options : ServiceAddress {
  std::string id, matrix, b, x, solver = "auto", preconditioner = "auto", settings;
  std::int64_t rhs = 1;
  double limit = 0;
  bool force = false;
};

std::string text_of(const json& job) {
  const std::string id = job["id"], state = job["state"], matrix = job["matrix"];
  std::string text = fmt::format("{:<36} {:<9} {}, iteration {}", id, state, matrix, job["iteration"].get<std::int64_t>());
  if (job.contains("residual") && job["residual"].is_number())
    text += fmt::format(", residual {:.2e}", job["residual"].get<double>());
  text += fmt::format(", {} in the queue, {} at work", human_seconds(job["queued_seconds"].get<double>()),
                      human_seconds(job["running_seconds"].get<double>()));
  if (job.contains("reason")) text += ": " + job["reason"].get<std::string>();
  return text + "\n";
}

int list(const Options& o) {
  HttpClient client = connect(o);
  const json answer = ask_json(client, "/v1/jobs");
  for (const json& job : answer["jobs"]) fmt::print("{}", text_of(job));
  return 0;
}

int cancel(const Options& o) {
  HttpClient client = connect(o);
  ask(client, "DELETE", "/v1/jobs/" + o.id);
  return 0;
}

std::string query_of(const Options& o) {
  std::string query =
      fmt::format("k={}&wait={}&method={}&preconditioner={}", o.rhs, kWaitSeconds, o.solver, o.preconditioner);
  if (o.limit > 0) query += fmt::format("&limit={}", o.limit);
  std::istringstream settings(o.settings);
  for (std::string setting; settings >> setting;) {
    if (setting.find('=') == std::string::npos || setting.find_first_of("&%+#") != std::string::npos)
      throw Error(ErrorKind::usage, fmt::format("\"{}\" is not of the form name=value", setting), "settings");
    query += "&" + setting;
  }
  return query;
}

template <class T>
HostVector<T> columns_of(std::span<const double> rows, std::int64_t columns) {
  HostVector<T> all;
  append_columns<T>(rows, columns, 0, columns, all);
  return all;
}

template <class T>
void write(const Options& o, const HttpReply& reply, std::int64_t n) {
  if (reply.body.size() != static_cast<std::size_t>(n * o.rhs) * sizeof(T))
    throw Error(ErrorKind::internal, "the service answered with an x of another size; its matrix may have been replaced");
  const HostVector<double> rows = rows_of<T>(std::as_bytes(std::span(reply.body)), n, o.rhs);
  VectorWriter writer(o.x, "x", n, sizeof(T) == sizeof(float), o.rhs);
  writer.append(rows.data(), n);
  writer.finish();
}

int solve(const Options& o) {
  require_spared({{o.b, "b"}}, {o.x});
  check_vector_suffix(o.x);
  check_vector_writable(o.x, o.rhs);
  if (!o.force) require_replaceable(o.x, Output::vector, "x");
  const std::string query = query_of(o);
  HttpClient client = connect(o);
  const std::string path = "/v1/matrices/" + o.matrix;
  const json matrix = ask_json(client, path);
  if (matrix["state"] != "ready")
    throw Error(ErrorKind::input, fmt::format("{} is {}", o.matrix, matrix["state"].get<std::string>()));
  const std::int64_t n = matrix["rows"];
  const VectorFile file(o.b, "b", o.rhs);
  if (file.size() != n)
    throw Error(ErrorKind::input, fmt::format("{}: b has {} rows, but {} has {}", o.b, file.size(), o.matrix, n));
  const HostVector<double> rows = file.read(0, n);
  const bool f32 = matrix["type"] == "f32";
  require_in_range(f32 ? ValueType::f32 : ValueType::f64, rows, o.b);
  const HostVector<float> narrow = f32 ? columns_of<float>(rows, o.rhs) : HostVector<float>();
  const HostVector<double> wide = f32 ? HostVector<double>() : columns_of<double>(rows, o.rhs);
  const auto bytes = f32 ? std::as_bytes(std::span(narrow)) : std::as_bytes(std::span(wide));
  const HttpReply reply = ask(client, "POST", path + "/solve?" + query, bytes, "application/octet-stream");
  f32 ? write<float>(o, reply, n) : write<double>(o, reply, n);
  fmt::print("{} iterations, residual {} of b\n", reply.fields.at("shardmat-iterations"),
             reply.fields.at("shardmat-residual"));
  return 0;
}

}  // namespace

std::vector<ClientCommand> add_client_jobs(const CommandLine& client) {
  const auto o = std::make_shared<Options>();
  std::vector<ClientCommand> commands;
  const auto add = [&](const char* name, const char* help, int (*run)(const Options&)) {
    return add_client_command(client, name, help, o, run, commands);
  };
  const CommandLine app = add("solve", "Solve A x = b, from a file to a file; Ctrl-C cancels the job", solve);
  app.add_option("name", o->matrix, "name of the matrix in the service")->required()->check(name_in_service());
  app.add_option("b", o->b, "file with b (" + vector_suffixes() + ")")->required();
  app.add_option("x", o->x, "file for x (" + vector_suffixes() + ")")->required()->check(output_name());
  app.in(Topic::input)
      .add_option("--rhs", o->rhs, "columns of b and x")
      ->check(whole_number(1, 256))
      ->capture_default_str()
      ->common();
  app.in(Topic::computation)
      .add_option("--solver", o->solver, "the method; see shardmat help solve")
      ->capture_default_str()
      ->common();
  app.in(Topic::computation)
      .add_option("--preconditioner", o->preconditioner, "what is applied to the residual; see shardmat help solve")
      ->capture_default_str()
      ->common();
  app.in(Topic::computation)
      .add_option("--settings", o->settings,
                  "more settings of the solver, as \"rtol=1e-10 restart=50\": names of the options of shardmat solve");
  app.in(Topic::computation)
      .add_option("--limit", o->limit, "seconds after which the job ends, queue included (default: none)")
      ->check(positive_number());
  app.in(Topic::output)
      .add_flag("--force", o->force, "replace the output file even if it is of another kind, or has other datasets");
  add("jobs", "List the jobs that wait, run or have ended", list);
  add("cancel", "Cancel a job, or forget one that has ended", cancel)
      .add_option("id", o->id, "id of the job, as jobs lists it")
      ->required()
      ->check(name_in_service());
  return commands;
}

}  // namespace shardmat::tools
