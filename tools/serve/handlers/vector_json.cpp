#include "tools/serve/handlers/vector_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/base/error.h"
#include "tools/serve/http/names.h"
#include "tools/serve/observe/service_json.h"
#include "tools/serve/words/value_names.h"

namespace shardmat::serve {

using json = nlohmann::ordered_json;

namespace {

constexpr std::int64_t kMostColumns = 256, kMostEntries = std::int64_t{1} << 48;
constexpr const char* kExample = "{\"matrix\": \"bar\"}";

[[noreturn]] void fail(const std::string& why) { throw Error(ErrorKind::input, why); }

std::int64_t whole_number(const std::string& key, const json& field, std::int64_t most) {
  if (field.is_number_integer() &&
      !(field.is_number_unsigned() && field.get<std::uint64_t>() > static_cast<std::uint64_t>(most)))
    if (const auto value = field.get<std::int64_t>(); value >= 1 && value <= most) return value;
  fail(fmt::format("{} must be a whole number from 1 to {}", key, most));
}

const std::string& text(const std::string& key, const json& field) {
  if (!field.is_string()) fail(fmt::format("{} must be a string", key));
  return field.get_ref<const std::string&>();
}

std::vector<std::string> patterns(const json& field) {
  if (field.is_boolean()) return field.get<bool>() ? std::vector<std::string>{"*"} : std::vector<std::string>{};
  constexpr std::size_t kMostPatterns = 64, kLongestPattern = 256;
  const auto is_pattern = [](const json& one) {
    return one.is_string() && one.get_ref<const std::string&>().size() <= kLongestPattern;
  };
  if (!field.is_array() || field.size() > kMostPatterns || !std::all_of(field.begin(), field.end(), is_pattern))
    fail(fmt::format("shared must be true, false, or a list of at most {} patterns of the names of tokens, as [\"lab-*\"]",
                     kMostPatterns));
  return field;
}

void read_field(const std::string& key, const json& field, WantedVector& wanted) {
  if (key == "matrix") {
    wanted.matrix = text(key, field);
    if (!is_matrix_name(wanted.matrix)) fail("matrix must be the name of a matrix");
  } else if (key == "n") {
    wanted.size = whole_number(key, field, kMostEntries);
  } else if (key == "columns") {
    wanted.columns = whole_number(key, field, kMostColumns);
  } else if (key == "type") {
    wanted.type = parse_type(text(key, field));
    if (!wanted.type) fail(fmt::format("there is no type \"{}\"; choose f64 or f32", text(key, field)));
  } else if (key == "layout") {
    if (text(key, field) != "rows" && text(key, field) != "columns")
      fail("layout must be \"columns\", as x of the matrix, or \"rows\", as y");
    wanted.as_y = text(key, field) == "rows";
  } else if (key == "shared") {
    wanted.shared = patterns(field);
  } else {
    fail(fmt::format("there is no field \"{}\"; there are matrix, n, columns, type, layout and shared", key));
  }
}

}  // namespace

WantedVector parse_vector(std::string_view body) {
  const json value = parse_json(body, kExample);
  WantedVector wanted;
  for (const auto& [key, field] : value.items()) read_field(key, field, wanted);
  if (wanted.matrix.empty() == (wanted.size == 0)) fail("name either matrix, or n, the number of entries");
  if (wanted.matrix.empty() && value.contains("layout")) fail("layout is for a vector of a matrix");
  return wanted;
}

json to_json(const Vector& vector, const Rights& rights) {
  json one{{"id", vector.id},
           {"state", vector.lost ? "lost" : "ready"},
           {"n", vector.size},
           {"columns", vector.columns},
           {"type", type_name(vector.type)}};
  if (!vector.matrix.empty()) one["matrix"] = vector.matrix;
  if (vector.is_owned_by(rights)) one["owner"] = vector.owner, one["shared"] = vector.shared;
  one["device_bytes"] = vector.bytes_of_ranks;
  return one;
}

}  // namespace shardmat::serve
