#include "tools/serve/handlers/infer_request.h"

#include <fmt/format.h>

#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "kernels/base/error.h"
#include "tools/serve/observe/service_json.h"

namespace shardmat::serve {

using json = nlohmann::ordered_json;

namespace {

[[noreturn]] void fail(const std::string& why) { throw Error(ErrorKind::input, why); }

/// A field of an object; null if it is absent.
const json& member(const json& parent, const char* key) {
  static const json none;
  return parent.contains(key) ? parent[key] : none;
}

/// An object with no other fields than the known ones. An absent one is empty.
const json& object(const json& parent, const char* key, std::initializer_list<const char*> known, const std::string& what) {
  static const json empty = json::object();
  const json& value = parent.contains(key) ? parent[key] : empty;
  if (!value.is_object()) fail(what + " must be an object");
  for (const auto& [name, unused] : value.items())
    if (std::none_of(known.begin(), known.end(), [&](const char* one) { return name == one; }))
      fail(fmt::format("{} have no \"{}\"; there are {}", what, name, fmt::join(known, ", ")));
  return value;
}

/// The only tensor of a list.
const json& tensor(const json& list, const char* name, const char* what) {
  if (!list.is_array() || list.size() != 1 || !list[0].is_object() || member(list[0], "name") != name)
    fail(fmt::format("{} must be a list of one tensor whose name is {}", what, name));
  return list[0];
}

bool flag(const json& parameters, const char* key, bool otherwise) {
  if (!parameters.contains(key)) return otherwise;
  if (!parameters[key].is_boolean()) fail(fmt::format("{} must be true or false", key));
  return parameters[key];
}

void read_parameters(const json& request, InferRequest& result) {
  const json& parameters =
      object(request, "parameters", {"alpha", "timeout", "priority", "binary_data_output"}, "the parameters");
  if (parameters.contains("alpha")) {
    if (!parameters["alpha"].is_number() || !std::isfinite(parameters["alpha"].get<double>()))
      fail("alpha must be a finite number");
    result.alpha = parameters["alpha"];
  }
  if (parameters.contains("timeout")) {
    if (!parameters["timeout"].is_number() || !(parameters["timeout"].get<double>() > 0))
      fail("timeout must be a number of microseconds above 0");
    result.timeout_seconds = parameters["timeout"].get<double>() * 1e-6;
  }
  if (parameters.contains("priority")) {
    const json& priority = parameters["priority"];
    if (!priority.is_number_unsigned() || priority.get<std::uint64_t>() > kPriorityNames.size())
      fail("priority must be 1 (high), 2 (normal), 3 (low) or 0 (as without it)");
    if (priority != 0) result.priority = static_cast<Priority>(priority.get<int>() - 1);
  }
  result.binary_output = flag(parameters, "binary_data_output", false);
}

void read_output(const json& request, InferRequest& result) {
  if (!request.contains("outputs")) return;
  const json& y = tensor(request["outputs"], "y", "outputs");
  const json& parameters = object(y, "parameters", {"binary_data"}, "the parameters of y");
  result.binary_output = flag(parameters, "binary_data", result.binary_output);
}

/// The numbers of a list of numbers, or of lists of them.
void flatten(const json& value, std::vector<double>& numbers, int depth) {
  for (const json& one : value)
    if (one.is_number()) numbers.push_back(one);
    else if (one.is_array() && depth < 2) flatten(one, numbers, depth + 1);
    else fail("the data of x must be numbers, or lists of numbers");
}

void read_input(const json& request, InferRequest& result) {
  const json& x = tensor(member(request, "inputs"), "x", "inputs");
  const json& datatype = member(x, "datatype");
  if (datatype != "FP64" && datatype != "FP32") fail("the datatype of x must be FP64 or FP32");
  result.type = datatype == "FP64" ? ValueType::f64 : ValueType::f32;
  const json& shape = member(x, "shape");
  const auto is_size = [](const json& one) { return one.is_number_unsigned() && one.get<std::uint64_t>() < (1ull << 48); };
  if (!shape.is_array() || shape.empty() || shape.size() > 2 || !std::all_of(shape.begin(), shape.end(), is_size))
    fail("the shape of x must be [n] or [k, n]");
  for (const json& one : shape) result.shape.push_back(one);
  if (result.columns() < 1) fail("k must be 1 or more");
  const json& parameters = object(x, "parameters", {"binary_data_size"}, "the parameters of x");
  if (parameters.contains("binary_data_size") == x.contains("data"))
    fail("x needs either data or the parameter binary_data_size");
  if (x.contains("data")) {
    if (!x["data"].is_array()) fail("the data of x must be a list");
    flatten(x["data"], result.data, 1);
  } else {
    if (!parameters["binary_data_size"].is_number_unsigned()) fail("binary_data_size must be a number of bytes");
    result.binary_bytes = parameters["binary_data_size"];
  }
}

}  // namespace

std::string_view datatype_name(ValueType type) { return type == ValueType::f32 ? "FP32" : "FP64"; }

InferRequest parse_infer(std::string_view text) {
  const json request = parse_json(text, R"({"inputs": [{"name": "x", "datatype": "FP64", "shape": [2], "data": [1, 2]}]})");
  InferRequest result;
  if (request.contains("id")) {
    if (!request["id"].is_string()) fail("id must be a string");
    result.id = request["id"];
  }
  read_parameters(request, result);
  read_output(request, result);
  read_input(request, result);
  return result;
}

}  // namespace shardmat::serve
