#include "tools/client/service_vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "kernels/base/error.h"
#include "partition/vectors/vector_file.h"
#include "tools/cli/checks.h"

namespace shardmat::tools {
namespace {

using json = nlohmann::ordered_json;

template <class T>
HostVector<std::byte> bytes_of_columns(std::span<const double> rows, std::int64_t columns) {
  HostVector<T> values;
  append_columns<T>(rows, columns, 0, columns, values);
  HostVector<std::byte> bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace

json find_vector(HttpClient& client, const std::string& id) {
  const json all = ask_json(client, "/v1/vectors")["vectors"];
  const auto found = std::find_if(all.begin(), all.end(), [&](const json& one) { return one["id"] == id; });
  if (found == all.end()) throw Error(ErrorKind::input, fmt::format("there is no vector {}", id));
  return *found;
}

HostVector<std::byte> bytes_of_file(const std::string& file, const std::string& dataset, std::int64_t rows,
                                    std::int64_t columns, ValueType type, const std::string& of) {
  const VectorFile vector(file, dataset, columns);
  if (vector.size() != rows)
    throw Error(ErrorKind::input, fmt::format("{}: {} has {} rows, but {} has {}", file, dataset, vector.size(), of, rows));
  const HostVector<double> values = vector.read(0, rows);
  require_in_range(type, values, file);
  return type == ValueType::f32 ? bytes_of_columns<float>(values, columns) : bytes_of_columns<double>(values, columns);
}

NewVector::NewVector(HttpClient& client, const json& matrix, const std::string& file, const std::string& dataset,
                     std::int64_t columns)
    : client_(client) {
  const std::string name = matrix["name"], type = matrix["type"];
  const HostVector<std::byte> bytes =
      bytes_of_file(file, dataset, matrix["cols"], columns, type == "f32" ? ValueType::f32 : ValueType::f64, name);
  const std::string wanted = json{{"matrix", name}, {"columns", columns}}.dump();
  id_ = json::parse(ask(client, "POST", "/v1/vectors", std::as_bytes(std::span(wanted))).text())["id"];
  try {
    ask(client, "PUT", "/v1/vectors/" + id_, bytes, "application/octet-stream");
  } catch (const Error&) {
    client_.send("DELETE", "/v1/vectors/" + id_);
    throw;
  }
}

NewVector::~NewVector() {
  try {
    client_.send("DELETE", "/v1/vectors/" + id_);
  } catch (const std::exception&) {  // the service has gone, and the vector with it
  }
}

}  // namespace shardmat::tools
