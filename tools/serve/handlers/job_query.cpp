#include "tools/serve/handlers/job_query.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "kernels/base/error.h"
#include "tools/serve/handlers/client_place.h"
#include "tools/serve/http/names.h"
#include "tools/serve/observe/service_json.h"

namespace shardmat::serve {
namespace {

constexpr double kMostSeconds = 1e9;  ///< 30 years; a clock counts ten times as much

/// Reads a parameter that is no setting of solvers. Returns what is wrong with it, or nothing.
std::string read_parameter(const std::string& key, const std::string& value, JobQuery& query) {
  if (key == "k") {
    const auto columns = parse_whole(value);
    if (!columns || *columns < 1 || *columns > 256) return "k must be a whole number from 1 to 256";
    query.columns = *columns;
  } else if (key == "type") {
    query.type = value;
  } else if (key == "b" || key == "x0") {
    if (value.empty())
      return key == "b" ? "b must be the id of a vector, as POST /v1/vectors gives it"
                        : "x0 must be the id of a vector or of a job";
    (key == "b" ? query.b : query.x0) = value;
  } else if (key == "b_at" || key == "x0_at" || key == "x_at") {
    const auto place = parse_place(value);
    if (!place) return key + " must be a whole number from 0 on: bytes from the start of the memory";
    (key == "b_at" ? query.b_at : key == "x_at" ? query.x_at : query.x0_at) = place;
  } else if (key == "wait" || key == "limit") {
    const auto seconds = parse_number(value);
    if (!seconds || *seconds < 0 || *seconds > kMostSeconds || (key == "limit" && *seconds == 0))
      return fmt::format("{} must be a number of seconds {} 0 and at most {:g}", key, key == "wait" ? "from" : "above",
                         kMostSeconds);
    (key == "wait" ? query.wait_seconds : query.limit_seconds) = *seconds;
  } else if (key == "keep") {
    return read_flag(key, value, query.keeps);
  } else if (key == "alone") {
    return read_flag(key, value, query.alone.emplace());
  } else if (key == "mass") {
    if (value.empty()) return "mass must be the name of a matrix";
    query.mass = value;
  } else {
    query.priority = parse_priority(value);
    if (!query.priority) return "priority must be high, normal or low";
  }
  return {};
}

/// Of all kinds of jobs.
constexpr std::string_view kParameters[] = {"type", "wait", "limit", "priority"};

}  // namespace

std::variant<Problem, JobQuery> read_job_query(const JobKind& kind, const std::map<std::string, std::string>& pairs,
                                               std::span<const std::string> settings) {
  JobQuery query;
  std::vector<std::string> parameters = kind.parameters;
  parameters.insert(parameters.end(), std::begin(kParameters), std::end(kParameters));
  const auto wrong = [](std::string text) { return make_problem(400, "malformed", std::move(text)); };
  for (const auto& [key, value] : pairs) {
    const std::string name = key == "method" ? kind.method : key;
    const char* const method = kind.method.empty() ? "" : "method, ";
    if (std::find(parameters.begin(), parameters.end(), key) != parameters.end()) {
      if (std::string text = read_parameter(key, value, query); !text.empty()) return wrong(std::move(text));
      continue;
    }
    if (std::find(settings.begin(), settings.end(), name) == settings.end())
      return wrong(fmt::format("there is no parameter \"{}\" of {}; there are {}, {}and the settings: {}", key, kind.name,
                               fmt::join(parameters, ", "), method, fmt::join(settings, ", ")));
    if (value.empty() || value.find_first_of(" ,=") != std::string::npos)
      return wrong(fmt::format("{} has no such value", key));
    if (key == "method" && name != key && pairs.contains(name))
      return wrong(key + " and " + name + " are one thing too much");
    query.given[name] = value;
  }
  // By name, so that the same settings are the same text.
  for (const auto& [name, value] : query.given)
    query.settings += fmt::format("{}{}={}", query.settings.empty() ? "" : " ", name, value);
  if ((query.b_at && !query.b.empty()) || (query.x0_at && !query.x0.empty()))
    return wrong("b and b_at are one thing too much, as are x0 and x0_at");
  if (query.x_at && query.wait_seconds == 0)
    return wrong("x_at needs a wait above 0: x is written while the request waits for the job, and never later");
  return query;
}

std::map<std::string, std::string> pairs_of_json(std::string_view text) {
  const auto value = parse_json(text, R"({"method": "cg", "rtol": 1e-8})");
  std::map<std::string, std::string> pairs;
  for (const auto& [key, field] : value.items()) {
    if (field.is_string()) pairs[key] = field.get<std::string>();
    else if (field.is_boolean()) pairs[key] = field.get<bool>() ? "1" : "0";
    else if (field.is_number()) pairs[key] = field.dump();
    else throw Error(ErrorKind::input, fmt::format("{} must be a string, a number, true or false", key));
  }
  return pairs;
}

}  // namespace shardmat::serve
