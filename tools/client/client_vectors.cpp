#include "tools/client/client_vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "kernels/base/types.h"
#include "partition/readers/replaceable.h"
#include "partition/vectors/vector_file.h"
#include "tools/cli/checks.h"
#include "tools/cli/value_checks.h"
#include "tools/client/client_service.h"
#include "tools/client/service_vectors.h"

namespace shardmat::tools {
namespace {

using json = nlohmann::ordered_json;

struct Options : ServiceAddress {
  std::string id, matrix, type, file;
  std::vector<std::string> shared;
  std::int64_t entries = 0, columns = 1;
  bool rows = false, force = false;

  std::string path() const { return "/v1/vectors/" + id; }
};

std::string text_of(const json& vector) {
  const std::string id = vector["id"], state = vector["state"], type = vector["type"];
  std::string text = fmt::format("{:<36} {:<8} {} {} × {}", id, state, type, human_count(vector["n"]),
                                 vector["columns"].get<std::int64_t>());
  if (vector.contains("matrix")) text += ", made for " + vector["matrix"].get<std::string>();
  return text + "\n";
}

int list(const Options& o) {
  HttpClient client = connect(o);
  const json answer = ask_json(client, "/v1/vectors");
  for (const json& vector : answer["vectors"]) fmt::print("{}", text_of(vector));
  return 0;
}

int make(const Options& o) {
  if (o.matrix.empty() == (o.entries == 0))
    throw Error(ErrorKind::usage, "a vector is made for a matrix, or with a number of entries: give one of both", "n");
  if (o.rows && o.matrix.empty()) throw Error(ErrorKind::usage, "only a matrix has rows", "rows");
  json wanted{{"columns", o.columns}};
  if (!o.matrix.empty()) wanted["matrix"] = o.matrix;
  else wanted["n"] = o.entries;
  if (o.rows) wanted["layout"] = "rows";
  if (!o.type.empty()) wanted["type"] = o.type;
  if (!o.shared.empty()) wanted["shared"] = o.shared;
  const std::string body = wanted.dump();
  HttpClient client = connect(o);
  const HttpReply reply = ask(client, "POST", "/v1/vectors", std::as_bytes(std::span(body)));
  fmt::print("{}\n", json::parse(reply.text())["id"].get<std::string>());
  return 0;
}

int put(const Options& o) {
  HttpClient client = connect(o);
  const json vector = find_vector(client, o.id);
  const std::int64_t columns = vector["columns"];
  const bool f32 = vector["type"] == "f32";
  const HostVector<std::byte> bytes =
      bytes_of_file(o.file, "x", vector["n"], columns, f32 ? ValueType::f32 : ValueType::f64, o.id);
  ask(client, "PUT", o.path(), bytes, "application/octet-stream");
  return 0;
}

int get(const Options& o) {
  check_vector_suffix(o.file);
  check_vector_writable(o.file);
  if (!o.force) require_replaceable(o.file, Output::vector, "x");
  HttpClient client = connect(o);
  const json vector = find_vector(client, o.id);
  const std::int64_t n = vector["n"], columns = vector["columns"];
  const bool f32 = vector["type"] == "f32";
  const HttpReply reply = ask(client, "GET", o.path());
  if (reply.body.size() != static_cast<std::size_t>(n * columns) * (f32 ? sizeof(float) : sizeof(double)))
    throw Error(ErrorKind::internal, fmt::format("the service answered with {} bytes for {}", reply.body.size(), o.id));
  const auto bytes = std::as_bytes(std::span(reply.body));
  const HostVector<double> rows = f32 ? rows_of<float>(bytes, n, columns) : rows_of<double>(bytes, n, columns);
  VectorWriter writer(o.file, "x", n, f32, columns);
  writer.append(rows.data(), n);
  writer.finish();
  return 0;
}

int remove(const Options& o) {
  HttpClient client = connect(o);
  ask(client, "DELETE", o.path());
  return 0;
}

}  // namespace

std::vector<ClientCommand> add_client_vectors(const CommandLine& client) {
  const auto o = std::make_shared<Options>();
  std::vector<ClientCommand> commands;
  const auto add = [&](const char* name, const char* help, int (*run)(const Options&)) {
    return add_client_command(client, name, help, o, run, commands);
  };
  const auto add_id = [&](const CommandLine& app) {
    app.add_option("id", o->id, "id of the vector, as make-vector prints it")->required()->check(name_in_service());
  };
  add("vectors", "List the vectors that stay on the ranks", list);
  const CommandLine make_app = add("make-vector", "Make a vector of zeros that stays on the ranks, and print its id", make);
  make_app.add_option("matrix", o->matrix, "name of a matrix in the service. The vector is an x of this matrix")
      ->check(name_in_service());
  make_app.in(Topic::input)
      .add_option("--n", o->entries, "entries of a vector without a matrix")
      ->check(whole_number(1, std::int64_t{1} << 48));
  make_app.in(Topic::input)
      .add_option("--columns", o->columns, "columns of the vector")
      ->check(whole_number(1, 256))
      ->capture_default_str();
  make_app.in(Topic::input).add_flag("--rows", o->rows, "make a y of the matrix in place of an x");
  make_app.in(Topic::input)
      .add_option("--type", o->type, "type of its numbers (default: the matrix's, else f64)")
      ->check(one_of({"f64", "f32"}));
  make_app.in(Topic::machine)
      .add_option("--shared", o->shared, "pattern of the names of tokens that may use the vector, too. *: all tokens")
      ->type_name("PATTERN");
  const CommandLine put_app = add("put-vector", "Write the numbers of a file to a vector", put);
  add_id(put_app);
  put_app.add_option("x", o->file, "file with x (" + vector_suffixes() + ")")->required();
  const CommandLine get_app = add("get-vector", "Write the numbers of a vector to a file", get);
  add_id(get_app);
  get_app.add_option("x", o->file, "file for x (" + vector_suffixes() + ")")->required()->check(output_name());
  get_app.in(Topic::output)
      .add_flag("--force", o->force, "replace the output file even if it is of another kind, or has other datasets");
  add_id(add("delete-vector", "Free a vector", remove));
  return commands;
}

}  // namespace shardmat::tools
