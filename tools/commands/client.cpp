#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/host_vector.h"
#include "kernels/base/text.h"
#include "kernels/base/types.h"
#include "partition/readers/replaceable.h"
#include "partition/vectors/vector_file.h"
#include "tools/cli/checks.h"
#include "tools/cli/command.h"
#include "tools/cli/environment.h"
#include "tools/cli/report_option.h"
#include "tools/cli/write_report.h"
#include "tools/cli/write_text.h"
#include "tools/client/client_batch.h"
#include "tools/client/client_jobs.h"
#include "tools/client/client_library.h"
#include "tools/client/client_load.h"
#include "tools/client/client_service.h"
#include "tools/client/client_vectors.h"
#include "tools/client/client_wait.h"
#include "tools/client/service_vectors.h"

namespace shardmat::tools {
namespace {

using json = nlohmann::ordered_json;

struct Options : ServiceAddress {
  std::string name, x, y, y0, values, json;
  std::int64_t rhs = 1;
  double alpha = 1, beta = 0;
  bool force = false, off = false, transpose = false;
};

std::string path_of(const std::string& name) { return "/v1/matrices/" + name; }

/// Throws unless the ranks have the matrix and take new values.
void require_loaded(const json& matrix) {
  const std::string name = matrix["name"], state = matrix["state"], reason = matrix.value("reason", std::string());
  if (state == "ready" || state == "values_lost") return;
  if (state == "loading")
    throw Error(
        ErrorKind::rank_lost,
        fmt::format("{} is being loaded, for the first time or after a rank was lost; try again in a moment, or wait "
                    "with: shardmat client watch",
                    name));
  throw Error(ErrorKind::input, fmt::format("{} is {}{}; load it again", name, state, reason.empty() ? "" : ": " + reason));
}

/// Throws unless products are taken now, too.
void require_ready(const json& matrix) {
  require_loaded(matrix);
  const std::string name = matrix["name"];
  if (matrix["state"] == "values_lost")
    throw Error(ErrorKind::input, fmt::format("the new values of {0} were lost when the ranks were started again; put them "
                                              "again with: shardmat client put-values {0} FILE",
                                              name));
}

int pin(const Options& o) {
  HttpClient client = connect(o);
  const std::string body = json{{"pinned", !o.off}}.dump();
  warn_unsaved(json::parse(ask(client, "POST", path_of(o.name) + "/pin", std::as_bytes(std::span(body))).text()));
  return 0;
}

/// Figures of the service, as Prometheus reads them.
int metrics(const Options& o) {
  HttpClient client = connect(o);
  write_text("-", std::string(ask(client, "GET", "/metrics").text()));
  return 0;
}

int unload(const Options& o) {
  HttpClient client = connect(o);
  warn_unsaved(json::parse(ask(client, "POST", path_of(o.name) + "/unload").text()));
  return 0;
}

/// ", 4 threads on 8 cores (0-7)".
std::string threads_text(const json& rank) {
  if (!rank.contains("threads")) return "";  // an older service
  return fmt::format(", {} on {} ({})", human_count(rank["threads"], "thread"), human_count(rank["cores"], "core"),
                     rank["cpus"].get<std::string>());
}

std::string loss_text(const json& loss) {
  std::string text = fmt::format("  last loss, {}: {}", loss["time"].get<std::string>(), loss["reason"].get<std::string>());
  if (loss.contains("host")) text += " on " + loss["host"].get<std::string>();
  if (const std::string signal = fmt::format("signal {}", loss.value("signal", 0));
      loss.contains("signal") && text.find(signal) == std::string::npos)
    text += ", " + signal;
  return text + "\n";
}

int status(const Options& o) {
  HttpClient client = connect(o);
  json report{{"service", ask_json(client, "/v1/ranks")}, {"matrices", ask_json(client, "/v1/matrices")["matrices"]}};
  if (!o.json.empty()) write_report(o.json, report.dump(2));
  if (o.json == "-") return 0;
  const json& service = report["service"];
  fmt::print("Service {}, {} ranks, {} restarts\n", service["state"].get<std::string>(), service["ranks"].size(),
             service["restarts"].get<int>());
  for (const json& rank : service["ranks"])
    fmt::print("  rank {} on {}: {}{}\n", rank["rank"].get<int>(), rank["host"].get<std::string>(),
               rank["device"].get<std::string>(), threads_text(rank));
  if (service.contains("shared_cores"))
    fmt::print("  {} shared with {} of other services: both are slower while both work\n",
               human_count(service["shared_cores"]["cores"], "core"), human_count(service["shared_cores"]["ranks"], "rank"));
  if (service.contains("last_loss")) fmt::print("{}", loss_text(service["last_loss"]));
  for (const json& matrix : report["matrices"]) fmt::print("{}", text_of_matrix(matrix));
  return 0;
}

/// One line of text about an event.
std::string text_of(const std::string& event, const json& data) {
  std::string text = event;
  for (const char* key : {"name", "job", "state", "reason"})
    if (data.contains(key)) text += (key == std::string("reason") ? ": " : " ") + data[key].get<std::string>();
  if (data.contains("rank")) text += fmt::format(" (rank {})", data["rank"].get<int>());
  for (const json& matrix : data.value("matrices", json::array()))
    text += fmt::format(", {} {}", matrix["name"].get<std::string>(), matrix["state"].get<std::string>());
  return text + "\n";
}

/// Seconds; the service says every 15 s that it is still there.
constexpr double kLongestSilence = 20;

int watch(const Options& o) {
  HttpClient client = connect(o);
  for (const int number : {SIGINT, SIGTERM}) std::signal(number, [](int) { _exit(0); });
  std::string event;
  checked(client.follow("/v1/events", kLongestSilence, [&](const std::string& line) {
    if (line.rfind("event: ", 0) == 0) event = line.substr(7);
    if (line.rfind("data: ", 0) != 0) return;
    fmt::print("{}", text_of(event, json::parse(line.substr(6))));
    std::fflush(stdout);
  }));
  throw Error(ErrorKind::rank_lost, "the service has ended, or this client was too slow");
}

/// Y of the service for the X and Y of files, row by row. Columns that no product takes at once go in several requests.
template <class T>
HostVector<double> product(HttpClient& client, const Options& o, const json& matrix, std::span<const double> x,
                           std::span<const double> y0) {
  const std::int64_t widest = matrix["widths"].back()["columns"], rows = matrix[o.transpose ? "cols" : "rows"];
  HostVector<double> y(static_cast<std::size_t>(rows * o.rhs));
  for (std::int64_t first = 0; first < o.rhs; first += widest) {
    const std::int64_t count = std::min(widest, o.rhs - first);
    HostVector<T> part;
    append_columns<T>(x, o.rhs, first, count, part);
    append_columns<T>(y0, o.rhs, first, count, part);
    const HttpReply reply = ask(client, "POST",
                                fmt::format("{}/multiply?k={}&alpha={}&beta={}&transpose={}", path_of(o.name), count,
                                            o.alpha, o.beta, o.transpose ? 1 : 0),
                                std::as_bytes(std::span(part)), "application/octet-stream");
    if (reply.body.size() != static_cast<std::size_t>(rows * count) * sizeof(T))
      throw Error(ErrorKind::internal, "the service answered with a y of another size; its matrix may have been replaced");
    const T* values = reinterpret_cast<const T*>(reply.body.data());
    for (std::int64_t j = 0; j < count; ++j)
      for (std::int64_t i = 0; i < rows; ++i)
        y[static_cast<std::size_t>(i * o.rhs + first + j)] = static_cast<double>(values[j * rows + i]);
  }
  return y;
}

/// A matrix of a file with `rows` rows, whose values are of the service's type.
HostVector<double> read_rows(const std::string& path, const std::string& what, const Options& o, const json& matrix,
                             const std::string& rows, std::int64_t columns) {
  const VectorFile file(path, what, columns);
  if (file.size() != matrix[rows])
    throw Error(ErrorKind::input, fmt::format("{}: {} has {} rows, but must have {}: {} of {}", path, what, file.size(),
                                              matrix[rows].get<std::int64_t>(), rows, o.name));
  HostVector<double> values = file.read(0, file.size());
  require_in_range(matrix["type"] == "f32" ? ValueType::f32 : ValueType::f64, values, path);
  return values;
}

int put_values(const Options& o) {
  HttpClient client = connect(o);
  const json matrix = ask_json(client, path_of(o.name));
  require_loaded(matrix);
  const HostVector<double> values = read_rows(o.values, "values", o, matrix, "nnz", 1);
  const bool f32 = matrix["type"] == "f32";
  HostVector<float> narrow;
  if (f32) append_columns<float>(values, 1, 0, 1, narrow);
  const auto bytes = f32 ? std::as_bytes(std::span(narrow)) : std::as_bytes(std::span(values));
  const HttpReply reply = ask(client, "PUT", path_of(o.name) + "/values", bytes, "application/octet-stream");
  fmt::print("{} has generation {}\n", o.name, json::parse(reply.text())["generation"].get<std::uint64_t>());
  return 0;
}

/// A product with a vector of the service as x or y, in one request.
int multiply_vectors(const Options& o, HttpClient& client, const json& matrix) {
  const bool x_stays = is_vector_id(o.x), y_stays = is_vector_id(o.y);
  const ValueType type = matrix["type"] == "f32" ? ValueType::f32 : ValueType::f64;
  const std::int64_t columns = find_vector(client, x_stays ? o.x : o.y)["columns"];
  std::string query =
      fmt::format("{}/multiply?alpha={}&beta={}&transpose={}", path_of(o.name), o.alpha, o.beta, o.transpose ? 1 : 0);
  if (x_stays) query += "&x=" + o.x;
  if (y_stays) query += "&y=" + o.y;
  const std::int64_t x_rows = matrix[o.transpose ? "rows" : "cols"], y_rows = matrix[o.transpose ? "cols" : "rows"];
  HostVector<std::byte> body;
  if (!x_stays) body = bytes_of_file(o.x, "x", x_rows, columns, type, o.name);
  if (!o.y0.empty()) {
    const HostVector<std::byte> y0 = bytes_of_file(o.y0, "y0", y_rows, columns, type, o.name);
    body.insert(body.end(), y0.begin(), y0.end());
  }
  const HttpReply reply = ask(client, "POST", query, body, "application/octet-stream");
  if (y_stays) return 0;
  if (reply.body.size() != static_cast<std::size_t>(y_rows * columns) * size_of(type))
    throw Error(ErrorKind::internal, "the service answered with a y of another size; its matrix may have been replaced");
  const auto bytes = std::as_bytes(std::span(reply.body));
  const bool f32 = type == ValueType::f32;
  const HostVector<double> rows = f32 ? rows_of<float>(bytes, y_rows, columns) : rows_of<double>(bytes, y_rows, columns);
  VectorWriter writer(o.y, "y", y_rows, f32, columns);
  writer.append(rows.data(), y_rows);
  writer.finish();
  return 0;
}

/// Throws unless the options go together.
void check_multiply(const Options& o) {
  const bool y_stays = is_vector_id(o.y);
  if (y_stays && !o.y0.empty())
    throw Error(ErrorKind::usage, "what is added to a vector of the service is the vector itself, beta times", "y0");
  if (!y_stays && o.y0.empty() != (o.beta == 0))
    throw Error(ErrorKind::usage, "beta and y0 need each other: beta times the Y of a file is added",
                o.y0.empty() ? "y0" : "beta");
  if ((y_stays || is_vector_id(o.x)) && o.rhs != 1)
    throw Error(ErrorKind::usage, "a vector of the service says itself how many columns there are", "rhs");
  if (y_stays) return;
  require_spared({{o.x, "x"}, {o.y0, "y0"}}, {o.y});
  check_vector_suffix(o.y);
  check_vector_writable(o.y, o.rhs);
  if (!o.force) require_replaceable(o.y, Output::vector, "y");
}

int multiply(const Options& o) {
  check_multiply(o);
  HttpClient client = connect(o);
  const json matrix = ask_json(client, path_of(o.name));
  require_ready(matrix);
  if (is_vector_id(o.x) || is_vector_id(o.y)) return multiply_vectors(o, client, matrix);
  const std::string of_x = o.transpose ? "rows" : "cols", of_y = o.transpose ? "cols" : "rows";
  const HostVector<double> x = read_rows(o.x, "x", o, matrix, of_x, o.rhs);
  const HostVector<double> y0 = o.y0.empty() ? HostVector<double>() : read_rows(o.y0, "y0", o, matrix, of_y, o.rhs);
  const bool f32 = matrix["type"] == "f32";
  const HostVector<double> y = f32 ? product<float>(client, o, matrix, x, y0) : product<double>(client, o, matrix, x, y0);
  VectorWriter writer(o.y, "y", matrix[of_y], f32, o.rhs);
  writer.append(y.data(), matrix[of_y]);
  writer.finish();
  return 0;
}

CommandLine add_one(const CommandLine& client, const std::string& name, const std::string& help, Options& o) {
  const CommandLine app = client.add_subcommand(name, help);
  if (name != "status" && name != "watch" && name != "metrics")
    app.add_option("name", o.name, "name of the matrix in the service")->required()->check(name_in_service());
  add_address_options(app, o);
  return app;
}

}  // namespace

std::function<int()> add_client(const CommandLine& program) {
  const CommandLine app = program.add_subcommand("client", "Ask a running service to load, multiply and solve");
  app.require_subcommand();
  auto o = std::make_shared<Options>();
  std::vector<ClientCommand> others = add_client_load(app);
  const CommandLine values_app = add_one(app, "put-values", "Give a matrix the values of a file", *o);
  values_app
      .add_option("values", o->values,
                  "file with a value for each nonzero, in the order of the shard file: .npy, .mtx, or .h5 with the dataset "
                  "values, as another shard file of the same pattern")
      ->required();
  const CommandLine unload_app = add_one(app, "unload", "Free a matrix", *o);
  const CommandLine pin_app = add_one(app, "pin", "Keep a matrix when the service needs memory for other matrices", *o);
  pin_app.in(Topic::machine).add_flag("--off", o->off, "keep it no longer")->common();
  const CommandLine multiply_app = add_one(app, "multiply", "Compute y = alpha A x + beta y, from a file to a file", *o);
  multiply_app.add_option("x", o->x, "file with x (" + vector_suffixes() + "), or the id of a vector in the service")
      ->required();
  multiply_app.add_option("y", o->y, "file for y (" + vector_suffixes() + "), or the id of a vector that becomes y")
      ->required()
      ->check(output_name());
  multiply_app.in(Topic::input)
      .add_option("--rhs", o->rhs, "columns of x and y")
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str()
      ->common();
  multiply_app.in(Topic::computation)
      .add_option("--alpha", o->alpha, "factor of the product")
      ->check(finite_number())
      ->capture_default_str()
      ->common();
  multiply_app.in(Topic::computation)
      .add_option("--beta", o->beta, "factor of the Y of --y0, or of the vector that becomes y")
      ->check(finite_number())
      ->capture_default_str()
      ->common();
  multiply_app.in(Topic::computation)
      .add_flag("--transpose", o->transpose, "multiply with the transpose, from the rows that the service stores")
      ->common();
  multiply_app.in(Topic::input)
      .add_option("--y0", o->y0, "file with the Y that is added, beta times")
      ->type_name("FILE")
      ->common();
  multiply_app.in(Topic::output)
      .add_flag("--force", o->force, "replace the output file even if it is of another kind, or has other datasets");
  const CommandLine status_app = add_one(app, "status", "Show the ranks and the matrices", *o);
  add_json_option(status_app, o->json);
  const CommandLine watch_app =
      add_one(app, "watch",
              "Print what happens to ranks and matrices, a line each, until Ctrl-C. The service says every 15 s that it is "
              "there: once it has answered, --timeout is 20 s at least",
              *o);
  const CommandLine metrics_app = add_one(app, "metrics", "Print the service's figures, as Prometheus reads them", *o);
  for (const ClientCommand& one : add_client_vectors(app)) others.push_back(one);
  for (const ClientCommand& one : add_client_jobs(app)) others.push_back(one);
  for (const ClientCommand& one : add_client_batch(app)) others.push_back(one);
  for (const ClientCommand& one : add_client_wait(app)) others.push_back(one);
  for (const ClientCommand& one : add_client_library(app)) others.push_back(one);
  app.footer(
      "\nExamples:\n  shardmat client load bar bar.h5\n  shardmat client multiply bar x.npy y.npy\n"
      "  shardmat client load-arrays bar A.npz\n  shardmat client put-values bar new.npy\n  shardmat client status --json\n"
      "  shardmat client load --solvable bar bar.h5\n  shardmat client solve bar b.npy x.npy --preconditioner multigrid\n"
      "  shardmat client wait --job $(shardmat client submit bar b.npy)\n  shardmat client make-vector bar\n  shardmat "
      "client put-vector ID x.npy\n  shardmat client multiply bar ID y.npy\n");
  return [=] {
    require_single_process("client");
    for (const ClientCommand& one : others)
      if (one.app.parsed()) return one.run();
    return unload_app.parsed()     ? unload(*o)
           : values_app.parsed()   ? put_values(*o)
           : multiply_app.parsed() ? multiply(*o)
           : pin_app.parsed()      ? pin(*o)
           : metrics_app.parsed()  ? metrics(*o)
           : watch_app.parsed()    ? watch(*o)
                                   : status(*o);
  };
}

}  // namespace shardmat::tools
