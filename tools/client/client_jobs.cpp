#include "tools/client/client_jobs.h"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <sstream>
#include <string>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "kernels/base/types.h"
#include "partition/readers/replaceable.h"
#include "partition/vectors/vector_file.h"
#include "tools/cli/checks.h"
#include "tools/cli/print_report.h"
#include "tools/cli/value_checks.h"
#include "tools/client/client_service.h"
#include "tools/client/service_vectors.h"

namespace shardmat::tools {
namespace {

using json = nlohmann::ordered_json;

/// Longer than any solve: the client waits as long as the service does.
constexpr double kWaitSeconds = 1e9;

struct Options : ServiceAddress {
  std::string id, matrix, b, x, x0, solver = "auto", preconditioner = "auto", settings;
  std::string mass, method = "auto", shift, vectors, restarts;
  std::int64_t rhs = 1, count = 1;
  double limit = 0;
  double damping = 0.85;
  bool force = false, alone = false, unweighted = false;
};

std::string text_of(const json& job) {
  const std::string id = job["id"], state = job["state"], kind = job["kind"], matrix = job["matrix"];
  std::string text =
      fmt::format("{:<36} {:<9} {} {}, iteration {}", id, state, kind, matrix, job["iteration"].get<std::int64_t>());
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

template <class T>
void write_columns(const std::string& file, const HttpReply& reply, std::int64_t columns) {
  const auto n = static_cast<std::int64_t>(reply.body.size() / sizeof(T)) / columns;
  const HostVector<double> rows = rows_of<T>(std::as_bytes(std::span(reply.body)), n, columns);
  VectorWriter writer(file, "x", n, sizeof(T) == sizeof(float), columns);
  writer.append(rows.data(), n);
  writer.finish();
}

/// How far a job is; its x goes to a file.
int show(const Options& o) {
  if (!o.x.empty()) {
    check_vector_suffix(o.x);
    if (!o.force) require_replaceable(o.x, Output::vector, "x");
  }
  HttpClient client = connect(o);
  const json job = ask_json(client, "/v1/jobs/" + o.id);
  if (!o.x.empty()) {
    check_vector_writable(o.x, job["columns"]);
    const HttpReply reply = ask(client, "GET", "/v1/jobs/" + o.id + "/x");
    job["type"] == "f32" ? write_columns<float>(o.x, reply, job["columns"])
                         : write_columns<double>(o.x, reply, job["columns"]);
  }
  fmt::print("{}", text_of(job));
  for (const json& residual : job["history"])
    if (residual[1].is_number()) fmt::print("  {:>8} {:.3e}\n", residual[0].get<std::int64_t>(), residual[1].get<double>());
  return 0;
}

int cancel(const Options& o) {
  HttpClient client = connect(o);
  ask(client, "DELETE", "/v1/jobs/" + o.id);
  return 0;
}

/// The limit and the settings, behind parameters of a job.
std::string with_settings(std::string query, const Options& o) {
  if (o.limit > 0) query += fmt::format("&limit={}", o.limit);
  std::istringstream settings(o.settings);
  for (std::string setting; settings >> setting;) {
    if (setting.find('=') == std::string::npos || setting.find_first_of("&%+#") != std::string::npos)
      throw Error(ErrorKind::usage, fmt::format("\"{}\" is not of the form name=value", setting), "settings");
    query += "&" + setting;
  }
  return query;
}

std::string query_of_solve(const Options& o) {
  return with_settings(
      fmt::format("k={}&method={}&preconditioner={}{}", o.rhs, o.solver, o.preconditioner, o.alone ? "&alone=1" : ""), o);
}

template <class T>
void write(const std::string& file, const char* dataset, const HttpReply& reply, std::int64_t n, std::int64_t columns) {
  if (reply.body.size() != static_cast<std::size_t>(n * columns) * sizeof(T))
    throw Error(ErrorKind::internal, "the service answered with an x of another size; its matrix may have been replaced");
  const HostVector<double> rows = rows_of<T>(std::as_bytes(std::span(reply.body)), n, columns);
  VectorWriter writer(file, dataset, n, sizeof(T) == sizeof(float), columns);
  writer.append(rows.data(), n);
  writer.finish();
}

/// A matrix that is ready.
json describe_matrix(HttpClient& client, const std::string& name) {
  json matrix = ask_json(client, "/v1/matrices/" + name);
  if (matrix["state"] != "ready")
    throw Error(ErrorKind::input, fmt::format("{} is {}", name, matrix["state"].get<std::string>()));
  return matrix;
}

/// Asks for a job with the numbers of a file.
HttpReply ask_with_numbers(HttpClient& client, const Options& o, const json& matrix, const std::string& name,
                           const char* dataset, const std::string& query) {
  const HostVector<std::byte> bytes = bytes_of_file(name, dataset, matrix["rows"], o.rhs,
                                                    matrix["type"] == "f32" ? ValueType::f32 : ValueType::f64, o.matrix);
  return ask(client, "POST", "/v1/matrices/" + o.matrix + query, bytes, "application/octet-stream");
}

/// A first guess of a file becomes a vector until the service has answered: by then a job that waits has it.
HttpReply ask_for_solve(HttpClient& client, const Options& o, const json& matrix, std::string query) {
  std::optional<NewVector> guess;
  if (is_vector_id(o.x0) || is_job_id(o.x0)) query += "&x0=" + o.x0;
  else if (!o.x0.empty()) query += "&x0=" + guess.emplace(client, matrix, o.x0, "x0", o.rhs).id();
  if (is_vector_id(o.b)) return ask(client, "POST", "/v1/matrices/" + o.matrix + "/solve?" + query + "&b=" + o.b);
  return ask_with_numbers(client, o, matrix, o.b, "b", "/solve?" + query);
}

void write_x(const Options& o, const json& matrix, const HttpReply& reply, const char* dataset) {
  const std::int64_t n = matrix["rows"];
  matrix["type"] == "f32" ? write<float>(o.x, dataset, reply, n, o.rhs) : write<double>(o.x, dataset, reply, n, o.rhs);
}

int solve(const Options& o) {
  require_spared({{o.b, "b"}, {o.x0, "x0"}}, {o.x});
  check_vector_suffix(o.x);
  check_vector_writable(o.x, o.rhs);
  if (!o.force) require_replaceable(o.x, Output::vector, "x");
  const std::string query = query_of_solve(o) + fmt::format("&wait={}", kWaitSeconds);
  HttpClient client = connect(o);
  const json matrix = describe_matrix(client, o.matrix);
  const HttpReply reply = ask_for_solve(client, o, matrix, query);
  write_x(o, matrix, reply, "x");
  fmt::print("{} iterations, residual {} of b\n", reply.fields.at("shardmat-iterations"),
             reply.fields.at("shardmat-residual"));
  return 0;
}

int pagerank(const Options& o) {
  require_spared({{o.restarts, "the restarts"}}, {o.x});
  check_vector_suffix(o.x);
  check_vector_writable(o.x, o.rhs);
  if (!o.force) require_replaceable(o.x, Output::vector, "scores");
  if (o.restarts.empty() && o.rhs != 1)
    throw Error(ErrorKind::usage, "several columns need a file of restarts with as many", "rhs");
  const std::string query = with_settings(
      fmt::format("/pagerank?k={}&damping={}&unweighted={}&wait={}", o.rhs, o.damping, o.unweighted ? 1 : 0, kWaitSeconds),
      o);
  HttpClient client = connect(o);
  const json matrix = describe_matrix(client, o.matrix);
  const HttpReply reply = o.restarts.empty() ? ask(client, "POST", "/v1/matrices/" + o.matrix + query)
                                             : ask_with_numbers(client, o, matrix, o.restarts, "seeds", query);
  write_x(o, matrix, reply, "scores");
  fmt::print("{} iterations, residual {}\n", reply.fields.at("shardmat-iterations"), reply.fields.at("shardmat-residual"));
  return 0;
}

std::string text_of_pair(const json& pair) {
  const auto number = [](const json& value) { return value.is_number() ? value.get<double>() : 0.0; };
  std::string text = fmt::format("{:>23.16g}", number(pair["value"]));
  if (pair.contains("frequency")) text += fmt::format("  {:>13.7g}", number(pair["frequency"]));
  text += fmt::format("  {:>9.1e}", number(pair["relative_residual"]));
  return text + (pair.value("zero", false) ? "  zero mode\n" : "\n");
}

int eigen(const Options& o) {
  if (!o.vectors.empty()) {
    check_vector_suffix(o.vectors);
    check_vector_writable(o.vectors, o.count);
    if (!o.force) require_replaceable(o.vectors, Output::vector, "vectors");
  }
  std::string query = fmt::format("wait={}&count={}&method={}", kWaitSeconds, o.count, o.method);
  if (!o.mass.empty()) query += "&mass=" + o.mass;
  if (!o.shift.empty()) query += "&shift=" + o.shift;
  query = with_settings(std::move(query), o);
  HttpClient client = connect(o);
  const std::int64_t n = describe_matrix(client, o.matrix)["rows"];
  const json job = json::parse(ask(client, "POST", "/v1/matrices/" + o.matrix + "/eigen?" + query).body);
  fmt::print("{}", text_of_pairs(job));
  const std::string id = job["id"], x = job["x"];
  if (o.vectors.empty()) {
    fmt::print("the eigenvectors are {}; shardmat client cancel {} forgets them\n", x, id);
    return code_of_pairs(job);
  }
  const HttpReply reply = ask(client, "GET", "/v1/jobs/" + id + "/x");
  const std::int64_t columns = job["columns"];
  if (job["type"] == "f32") write<float>(o.vectors, "vectors", reply, n, columns);
  else write<double>(o.vectors, "vectors", reply, n, columns);
  ask(client, "DELETE", "/v1/jobs/" + id);
  return code_of_pairs(job);
}

/// A solve that this command does not wait for; prints the id of its job.
int submit(const Options& o) {
  const std::string query = query_of_solve(o);
  HttpClient client = connect(o);
  const HttpReply reply = ask_for_solve(client, o, describe_matrix(client, o.matrix), query);
  fmt::print("{}\n", json::parse(reply.text())["id"].get<std::string>());
  return 0;
}

void add_solve_options(const CommandLine& app, Options& o) {
  app.in(Topic::input)
      .add_option("--x0", o.x0, "the first guess: a file, or the id of a vector or of a job that has ended (default: zeros)")
      ->type_name("FILE|ID")
      ->common();
  app.in(Topic::input)
      .add_option("--rhs", o.rhs, "columns of b and x")
      ->check(whole_number(1, 256))
      ->capture_default_str()
      ->common();
  app.in(Topic::computation)
      .add_option("--solver", o.solver, "the method; see shardmat help solve")
      ->capture_default_str()
      ->common();
  app.in(Topic::computation)
      .add_option("--preconditioner", o.preconditioner, "what is applied to the residual; see shardmat help solve")
      ->capture_default_str()
      ->common();
  app.in(Topic::computation)
      .add_option("--settings", o.settings,
                  "more settings of the solver, as \"rtol=1e-10 restart=50\": names of the options of shardmat solve");
  app.in(Topic::computation)
      .add_flag("--alone", o.alone,
                "is not merged with solves of others, and so has the bits of shardmat solve; see tools/serve/reference.md");
  app.in(Topic::computation)
      .add_option("--limit", o.limit, "seconds after which the job ends, queue included (default: none)")
      ->check(positive_number());
}

void add_pagerank(const CommandLine& app, Options& o) {
  app.add_option("name", o.matrix, "name of the matrix in the service; entry (i, j) is the weight of an edge from i to j")
      ->required()
      ->check(name_in_service());
  app.add_option("scores", o.x, "file for the scores (" + vector_suffixes() + ")")->required()->check(output_name());
  app.in(Topic::input)
      .add_option("--restarts", o.restarts,
                  "file with a weight for each vertex: where walks restart (default: anywhere, with equal probability)")
      ->type_name("FILE")
      ->common();
  app.in(Topic::input)
      .add_option("--rhs", o.rhs, "columns of the restarts and of the scores")
      ->check(whole_number(1, 256))
      ->capture_default_str();
  app.in(Topic::input)
      .add_flag("--unweighted", o.unweighted, "take every stored entry of the matrix as an edge of weight 1")
      ->common();
  const CommandLine computation = app.in(Topic::computation);
  computation.add_option("--damping", o.damping, "probability that a walk goes on along an edge")
      ->check(finite_number())
      ->capture_default_str()
      ->common();
  computation.add_option(
      "--settings", o.settings,
      "more settings, as \"tolerance=1e-8 max_iterations=500\": names of the options of shardmat pagerank");
  computation.add_option("--limit", o.limit, "seconds after which the job ends, queue included (default: none)")
      ->check(positive_number());
  app.in(Topic::output)
      .add_flag("--force", o.force, "replace the output file even if it is of another kind, or has other datasets");
}

}  // namespace

std::string text_of_pairs(const json& job) {
  std::string text;
  for (const json& pair : job["result"]) text += text_of_pair(pair);
  return text + (job.contains("completeness") ? job["completeness"].get<std::string>() + "\n" : "");
}

int code_of_pairs(const json& job) {
  if (job.value("complete", "") != "no") return 0;
  print_news(
      "shardmat: eigenvalues among those found are missing; allow a smaller tolerance or more guard vectors, or take the "
      "method shift_invert\n");
  return kNotConverged;
}

std::vector<ClientCommand> add_client_jobs(const CommandLine& client) {
  const auto o = std::make_shared<Options>();
  std::vector<ClientCommand> commands;
  const auto add = [&](const char* name, const char* help, int (*run)(const Options&)) {
    return add_client_command(client, name, help, o, run, commands);
  };
  const CommandLine app = add("solve", "Solve A x = b, from a file to a file; Ctrl-C cancels the job", solve);
  app.add_option("name", o->matrix, "name of the matrix in the service")->required()->check(name_in_service());
  app.add_option("b", o->b, "file with b (" + vector_suffixes() + "), or the id of a vector in the service")->required();
  app.add_option("x", o->x, "file for x (" + vector_suffixes() + ")")->required()->check(output_name());
  add_solve_options(app, *o);
  app.in(Topic::output)
      .add_flag("--force", o->force, "replace the output file even if it is of another kind, or has other datasets");
  const CommandLine submit_app =
      add("submit", "Ask for a solve without waiting for it, and print the id of its job", submit);
  submit_app.add_option("name", o->matrix, "name of the matrix in the service")->required()->check(name_in_service());
  submit_app.add_option("b", o->b, "file with b (" + vector_suffixes() + "), or the id of a vector in the service")
      ->required();
  add_solve_options(submit_app, *o);
  const CommandLine of_eigen =
      add("eigen", "Find eigenvalues of a matrix, or of K x = λ M x; Ctrl-C cancels the job", eigen);
  of_eigen.add_option("name", o->matrix, "name of the matrix in the service")->required()->check(name_in_service());
  const CommandLine computation = of_eigen.in(Topic::computation);
  computation.add_option("--count", o->count, "number of eigenvalues")
      ->check(whole_number(1, 256))
      ->capture_default_str()
      ->common();
  computation.add_option("--mass", o->mass, "name of the matrix M in the service")->check(name_in_service())->common();
  computation.add_option("--shift", o->shift, "eigenvalues nearest to X")->check(finite_number())->common();
  computation.add_option("--method", o->method, "the method; see shardmat help eigen")->capture_default_str()->common();
  computation.add_option("--settings", o->settings,
                         "more settings, as \"which=both tolerance=1e-8\": names of the options of shardmat eigen");
  of_eigen.in(Topic::output)
      .add_option("--vectors", o->vectors,
                  "write the eigenvectors to this file (" + vector_suffixes() + "); else they stay in the service")
      ->check(output_name())
      ->type_name("FILE")
      ->common();
  computation.add_option("--limit", o->limit, "seconds after which the job ends, queue included (default: none)")
      ->check(positive_number());
  of_eigen.in(Topic::output)
      .add_flag("--force", o->force, "replace the output file even if it is of another kind, or has other datasets");
  add_pagerank(add("pagerank", "Rank the vertices of a graph, into a file; Ctrl-C cancels the job", pagerank), *o);
  add("jobs", "List the jobs that wait, run or have ended", list);
  const CommandLine show_app = add("job", "Show a job and its residuals, and write its x to a file", show);
  show_app.add_option("id", o->id, "id of the job, as jobs lists it")->required()->check(name_in_service());
  show_app.add_option("x", o->x, "file for x (" + vector_suffixes() + "), as far as the job came")->check(output_name());
  show_app.in(Topic::output)
      .add_flag("--force", o->force, "replace the output file even if it is of another kind, or has other datasets");
  add("cancel", "Cancel a job, or forget one that has ended", cancel)
      .add_option("id", o->id, "id of the job, as jobs lists it")
      ->required()
      ->check(name_in_service());
  return commands;
}

}  // namespace shardmat::tools
